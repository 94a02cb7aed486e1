// Text for people: names that may contain anything, quotes, amounts, and the nearest name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/units.h"

namespace ckplan {

// Makes text from outside safe and short to show: names of nodes, tensors and files, and messages
// that contain them.
//
// A name may hold escape sequences that control a terminal, characters that change the writing
// direction or take no space, line feeds that forge extra lines of output, bytes that are not text
// at all, or a megabyte. Printable characters stay as they are. Everything else is spelled out: \n,
// \t and \r; other control characters as \x1b; other invisible characters as \u202e; bytes that are
// not UTF-8 as \xff. The result is one line of well-formed UTF-8.
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

// Quotes text for formats in which some characters have a special meaning.

// Returns a cell of a CSV file, quoted as in RFC 4180 if it contains a comma or a quotation mark.
// This and XmlText take text that is printable already (text.h).
std::string CsvCell(std::string_view printable);

// Returns the text as the content of an XML element, or of an attribute in double quotes.
std::string XmlText(std::string_view printable);

// Returns any text, made printable and shortened, for the inside of double quotes in a DOT file,
// where labels have backslash escapes and HTML entities.
std::string EscapeForDot(std::string_view text);

// Letters of ASCII in lower case, whatever the locale.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Sizes in a form that people read.

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

// "Did you mean": finds the known name that a user probably meant.

// Returns the name at the smallest Damerau-Levenshtein distance (insert, delete, replace, swap
// neighbours), ignoring the case of letters and leading hyphens; the first of equally near names.
// Returns nothing if no name is near: more than a third of the letters differ, and `typed` is not
// the beginning of a name either.
std::optional<std::string_view> NearName(std::string_view typed,
                                         std::span<const std::string_view> names);

// Returns "; did you mean "NAME"?" with the nearest name, or "" if no name is near.
std::string DidYouMean(std::string_view typed, std::span<const std::string_view> names);

// Reports that `typed` is not one of the names: "TYPED"; did you mean "NAME"? Known are NAME, NAME
std::string NoneOf(std::string_view typed, std::span<const std::string_view> names);

}  // namespace ckplan
