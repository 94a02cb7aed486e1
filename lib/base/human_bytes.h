// Sizes as people read them.
#pragma once

#include <string>

#include "lib/base/units.h"

namespace ckplan {

// Binary units with two decimals, rounded half up: "0 B", "1023 B", "1.00 KiB", "14.92 GiB".
std::string HumanBytes(Bytes bytes);
// "+12.00 MiB", "-3.50 MiB", "0 B"
std::string SignedBytes(Bytes change);

// One unit for a column of sizes: the one in which HumanBytes tells `typical`.
struct ByteUnit {
  std::string name;  // "GiB"
  int shift = 0;     // It is 2^shift bytes.
};
ByteUnit UnitOf(Bytes typical);
std::string AmountIn(const ByteUnit& unit, Bytes bytes);  // "14.92"; whole numbers of bytes.

}  // namespace ckplan
