#include "lib/base/quoted_text.h"

#include "lib/base/printable.h"

namespace ckplan {

std::string CsvCell(std::string_view printable) {
  if (printable.find_first_of(",\"") == std::string_view::npos) return std::string(printable);
  std::string quoted = "\"";
  for (const char c : printable) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

std::string XmlText(std::string_view printable) {
  std::string escaped;
  for (const char c : printable) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string EscapeForDot(std::string_view text) {
  constexpr size_t kLongest = 300;  // dot has a limit of its own.
  std::string escaped;
  for (const char c : Printable(text, kLongest)) {
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace ckplan
