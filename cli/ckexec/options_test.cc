#include "cli/ckexec/options.h"

#include <doctest/doctest.h>

namespace ckplan {

TEST_CASE("duration: the unit leaves digits before the decimal point") {
  CHECK(DurationText(0) == "0 us");
  CHECK(DurationText(0.00064) == "640 us");
  CHECK(DurationText(0.001) == "1.0 ms");
  CHECK(DurationText(0.0123) == "12.3 ms");
  CHECK(DurationText(1.838) == "1.84 s");
}

}  // namespace ckplan
