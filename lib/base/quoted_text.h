// Quotes text for formats in which some characters have a special meaning.
#pragma once

#include <string>
#include <string_view>

namespace ckplan {

// Returns a cell of a CSV file, quoted as in RFC 4180 if it contains a comma or a quotation mark.
// This and XmlText take text that is printable already (printable.h).
std::string CsvCell(std::string_view printable);

// Returns the text as the content of an XML element, or of an attribute in double quotes.
std::string XmlText(std::string_view printable);

// Returns any text, made printable and shortened, for the inside of double quotes in a DOT file,
// where labels have backslash escapes and HTML entities.
std::string EscapeForDot(std::string_view text);

}  // namespace ckplan
