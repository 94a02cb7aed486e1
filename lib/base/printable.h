// Text from outside made safe and short to show: names of nodes, tensors and files, and messages
// that contain them.
//
// A name may hold escape sequences that command a terminal, characters that turn the direction of
// writing or take no space, line feeds that forge lines of ours, bytes that are no text at all, or
// a megabyte. What is printable stays as it is. All else is spelled out: \n, \t and \r; other
// control characters as \x1b; other characters that cannot be seen as \u202e; bytes that are not
// UTF-8 as \xff. The result is one line of well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ckplan {

std::string Printable(std::string_view text);

inline constexpr size_t kLongestName = 160;  // Of a name in a line of text.

// At most `length` characters: of a longer text the beginning and the end, with its size between
// them: "block... [1048576 bytes] ...relu". `length` is at least 40.
std::string Printable(std::string_view text, size_t length);

// A message of one line: what it quotes ("...") is shortened, and then all of it, so that neither a
// long name nor many of them hide what a message says at its end.
std::string PrintableMessage(std::string_view message);

// The text with U+FFFD in place of each byte that is not UTF-8, as our JSON files have it.
std::string WellFormedUtf8(std::string_view text);

// The number of characters of well-formed UTF-8, and where character number `count` begins.
size_t CharacterCount(std::string_view text);
size_t ByteOffset(std::string_view text, size_t count);

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

struct Utf8Character {
  char32_t value = 0;
  size_t bytes = 1;
  bool is_valid = false;  // Else one byte that is no part of well-formed UTF-8.
};
// The character that begins at `at`, which is below the text's size.
Utf8Character Utf8At(std::string_view text, size_t at);

// False for control and format characters, separators of lines, and what Unicode calls no
// character.
bool IsPrintable(char32_t character);

}  // namespace ckplan
