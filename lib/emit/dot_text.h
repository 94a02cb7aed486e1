// Text inside the double quotes of a DOT file.
#pragma once

#include <string>
#include <string_view>

namespace ckplan {

// dot reads backslash escapes and HTML entities in labels: the text is shown as it is, made
// printable and short.
std::string EscapeForDot(std::string_view text);

}  // namespace ckplan
