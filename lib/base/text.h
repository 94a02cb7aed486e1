// Text for people: printable names, quoting, sizes, and suggestions for mistyped names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/units.h"

namespace ckplan {

// Makes text from outside, such as names of nodes, tensors and files, safe to show.
//
// A name may contain terminal escape sequences, characters that change the writing direction or
// have no width, line feeds that forge lines of output, invalid UTF-8, or a megabyte of text.
// Printable characters stay as they are; the rest is escaped: \n, \t and \r; other control
// characters as \x1b; other invisible characters as \u202e; bytes that are not UTF-8 as \xff. The
// result is one line of valid UTF-8.
std::string Printable(std::string_view text);

inline constexpr size_t kLongestName = 160;  // The most characters shown of a name.
// Also shortens the text to `length` (at least 40) characters: only its beginning and end stay,
// with its size between them: "block... [1048576 bytes] ...relu".
std::string Printable(std::string_view text, size_t length);

// Makes a message printable on one line. Shortens quoted parts ("...") first and then the whole
// message, so that long names do not hide the end of the message.
std::string PrintableMessage(std::string_view message);

// Replaces each byte that is not UTF-8 with U+FFFD, for our JSON files.
std::string WellFormedUtf8(std::string_view text);

// For valid UTF-8: CharacterCount counts the characters, and ByteOffset returns the offset of the
// character at index `count`.
size_t CharacterCount(std::string_view text);
size_t ByteOffset(std::string_view text, size_t count);

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

struct Utf8Character {
  char32_t value = 0;
  size_t bytes = 1;
  bool is_valid = false;  // False for a byte that is not part of valid UTF-8.
};
// Decodes the character that begins at `at`, which must be below the text's size.
Utf8Character Utf8At(std::string_view text, size_t at);

// Returns false for control and format characters, line separators and Unicode noncharacters.
bool IsPrintable(char32_t character);

// Quotes a CSV cell as in RFC 4180 if it contains a comma or a quotation mark. CsvCell and XmlText
// take text that is already printable.
std::string CsvCell(std::string_view printable);

// Escapes text for an XML element, or for an attribute in double quotes.
std::string XmlText(std::string_view printable);

// Makes text printable, shortens it, and escapes it for a double-quoted string in a DOT file.
// Graphviz reads backslash escapes and HTML entities in labels.
std::string EscapeForDot(std::string_view text);

// Lower-cases ASCII letters, independently of the locale.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Binary units with two decimals, rounded half up: "0 B", "1023 B", "1.00 KiB", "14.92 GiB".
std::string HumanBytes(Bytes bytes);
// Examples: "+12.00 MiB", "-3.50 MiB", "0 B".
std::string SignedBytes(Bytes change);

// The unit for a column of sizes: the unit that HumanBytes would choose for `typical`.
struct ByteUnit {
  std::string name;  // For example "GiB".
  int shift = 0;     // The unit is 2^shift bytes.
};
ByteUnit UnitOf(Bytes typical);
// For example "14.92"; bytes are printed as whole numbers.
std::string AmountIn(const ByteUnit& unit, Bytes bytes);

// Returns the name that a user probably meant: the first with the smallest Damerau-Levenshtein
// distance (insert, delete, replace, swap neighbours), ignoring case and leading hyphens. Returns
// nothing if no name is near, that is, if more than a third of the letters differ and no name
// begins with `typed`.
std::optional<std::string_view> NearName(std::string_view typed,
                                         std::span<const std::string_view> names);

// Returns "; did you mean "NAME"?", or "" if no name is near.
std::string DidYouMean(std::string_view typed, std::span<const std::string_view> names);

// Describes an unknown name: "TYPED"; did you mean "NAME"? Known: NAME, NAME
std::string DescribeUnknownName(std::string_view typed, std::span<const std::string_view> names);

}  // namespace ckplan
