// Reads the text of devices.json. ListDevices (cost_model.h) reads the text that is compiled into
// the program.
#pragma once

#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/cost/cost_model.h"

namespace ckplan {

// kInternal: the text is damaged. Every device needs a name of its own, a description, all rates
// but that of FP8, and a memory size. Rates and sizes are above 0. A link to the host needs a name
// and a rate.
Result<std::vector<Device>> ReadDevices(std::string_view json);

}  // namespace ckplan
