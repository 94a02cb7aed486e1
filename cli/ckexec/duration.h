// Measured times in a form for people.
#pragma once

#include <string>

namespace ckplan {

// Three digits or so: "1.84 s", "12.3 ms", "640 us".
std::string DurationText(double seconds);

}  // namespace ckplan
