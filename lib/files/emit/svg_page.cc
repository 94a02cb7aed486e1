#include "lib/files/emit/svg_page.h"

#include <fmt/format.h>

namespace ckplan {

std::string SvgPage(int64_t width, int64_t height, std::string_view light, std::string_view dark) {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}">
<style>
text {{ font: 13px sans-serif; fill: #222222; }}
.head {{ font-weight: bold; }}
.end {{ text-anchor: end; }}
.middle {{ text-anchor: middle; }}
.paper {{ fill: #ffffff; }}
.grid {{ stroke: #999999; stroke-opacity: 0.4; }}
{2}@media (prefers-color-scheme: dark) {{
text {{ fill: #dddddd; }}
.paper {{ fill: #1c1c1c; }}
{3}}}
</style>
<rect class="paper" width="{0}" height="{1}"/>
)",
      width, height, light, dark);
}

}  // namespace ckplan
