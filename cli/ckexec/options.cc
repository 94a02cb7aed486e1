#include "cli/ckexec/options.h"

#include <fmt/format.h>

namespace ckplan {

std::string DurationText(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} us", seconds * 1e6);
}

}  // namespace ckplan
