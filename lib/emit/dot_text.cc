#include "lib/emit/dot_text.h"

#include "lib/base/printable.h"

namespace ckplan {

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
