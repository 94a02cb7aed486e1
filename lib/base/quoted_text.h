// Quotes printable text (printable.h) for formats in which some characters have a special meaning.
#pragma once

#include <string>
#include <string_view>

namespace ckplan {

// Returns a cell of a CSV file, quoted as in RFC 4180 if it contains a comma or a quotation mark.
std::string CsvCell(std::string_view printable);

// Returns the text as the content of an XML element, or of an attribute in double quotes.
std::string XmlText(std::string_view printable);

}  // namespace ckplan
