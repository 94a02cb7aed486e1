#include "lib/base/units.h"

#include <fmt/format.h>

#include "lib/base/check.h"

namespace ckplan {

[[gnu::cold]] void FailOverflow(int64_t a, char operation, int64_t b) {
  FailCheck(__FILE__, __LINE__, "no overflow",
            fmt::format("bytes or costs overflow: {} {} {}", a, operation, b));
}

}  // namespace ckplan
