// Sizes in a form that people read.
#pragma once

#include <string>

#include "lib/base/units.h"

namespace ckplan {

// Binary units with two decimals, rounded half up: "0 B", "1023 B", "1.00 KiB", "14.92 GiB".
std::string HumanBytes(Bytes bytes);
// Examples: "+12.00 MiB", "-3.50 MiB", "0 B".
std::string SignedBytes(Bytes change);

// The unit for a column of sizes: the unit that HumanBytes would choose for `typical`.
struct ByteUnit {
  std::string name;  // For example "GiB".
  int shift = 0;     // The unit is 2^shift bytes.
};
ByteUnit UnitOf(Bytes typical);
// For example "14.92"; bytes are printed as whole numbers.
std::string AmountIn(const ByteUnit& unit, Bytes bytes);

}  // namespace ckplan
