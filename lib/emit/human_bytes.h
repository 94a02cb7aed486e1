// Sizes as people read them.
#pragma once

#include <string>

#include "lib/base/units.h"

namespace ckplan {

// Binary units with two decimals, rounded half up: "0 B", "1023 B", "1.00 KiB", "14.92 GiB".
std::string HumanBytes(Bytes bytes);

}  // namespace ckplan
