// Printable text (printable.h) inside forms that give some characters a meaning of their own.
#pragma once

#include <string>
#include <string_view>

namespace ckplan {

// A cell of a CSV file: quoted, as in RFC 4180, if it has a comma or a quotation mark.
std::string CsvCell(std::string_view printable);

// Content of an XML element, or of an attribute in double quotes.
std::string XmlText(std::string_view printable);

}  // namespace ckplan
