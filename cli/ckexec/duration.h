// Formats measured times for people.
#pragma once

#include <string>

namespace ckplan {

// Returns about three digits and a unit: "1.84 s", "12.3 ms", "640 us".
std::string DurationText(double seconds);

}  // namespace ckplan
