// What our pictures begin with: the size, the styles that all of them have, for light and for dark
// screens, and the paper. They need no script, font or network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ckplan {

// `light` and `dark` are further rules of CSS, each with a line feed at its end; those for dark
// screens change the ones before. The caller writes the end of the page.
std::string SvgPage(int64_t width, int64_t height, std::string_view light, std::string_view dark);

}  // namespace ckplan
