// A backend that offers less memory than the device has, for --memory-limit.
#pragma once

#include <memory>

#include "lib/backend/backend.h"
#include "lib/base/units.h"

namespace ckplan {

std::unique_ptr<Backend> LimitMemory(std::unique_ptr<Backend> backend, Bytes limit);

}  // namespace ckplan
