// Makes text from outside safe and short to show: names of nodes, tensors and files, and messages
// that contain them.
//
// A name may hold escape sequences that control a terminal, characters that change the writing
// direction or take no space, line feeds that forge extra lines of output, bytes that are not text
// at all, or a megabyte. Printable characters stay as they are. Everything else is spelled out: \n,
// \t and \r; other control characters as \x1b; other invisible characters as \u202e; bytes that are
// not UTF-8 as \xff. The result is one line of well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ckplan {

std::string Printable(std::string_view text);

inline constexpr size_t kLongestName = 160;  // The most characters of a name in a line of text.

// Returns at most `length` characters, which is at least 40. A longer text keeps its beginning and
// its end, with its size between them: "block... [1048576 bytes] ...relu".
std::string Printable(std::string_view text, size_t length);

// Returns a message of one line. Quoted parts ("...") are shortened first, then the whole message,
// so that long names do not hide the end of the message.
std::string PrintableMessage(std::string_view message);

// Returns the text with U+FFFD in place of each byte that is not UTF-8, for our JSON files.
std::string WellFormedUtf8(std::string_view text);

// CharacterCount counts the characters of well-formed UTF-8; ByteOffset finds where character
// number `count` begins.
size_t CharacterCount(std::string_view text);
size_t ByteOffset(std::string_view text, size_t count);

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

struct Utf8Character {
  char32_t value = 0;
  size_t bytes = 1;
  bool is_valid = false;  // False: a single byte that does not belong to well-formed UTF-8.
};
// Decodes the character that begins at `at`, which is below the text's size.
Utf8Character Utf8At(std::string_view text, size_t at);

// Returns false for control and format characters, line separators, and what Unicode calls
// noncharacters.
bool IsPrintable(char32_t character);

}  // namespace ckplan
