#include "lib/emit/dot_text.h"

#include "lib/emit/json_writer.h"

namespace ckplan {

std::string EscapeForDot(std::string_view text) {
  std::string escaped;
  for (const char c : RepairUtf8(text)) {
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      escaped += ' ';
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace ckplan
