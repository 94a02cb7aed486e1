// The beginning that our pictures share: the size, the common styles for light and dark screens,
// and the background. The pictures need no script, font or network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ckplan {

// `light` and `dark` are further CSS rules, each with a line feed at its end; those for dark
// screens override the light ones. The caller writes the end of the page.
std::string SvgPage(int64_t width, int64_t height, std::string_view light, std::string_view dark);

}  // namespace ckplan
