// Text inside the double quotes of a DOT file.
#pragma once

#include <string>
#include <string_view>

namespace ckplan {

// dot reads backslash escapes and HTML entities in labels: the text is shown as it is, control
// characters as spaces, bytes that are no UTF-8 repaired.
std::string EscapeForDot(std::string_view text);

}  // namespace ckplan
