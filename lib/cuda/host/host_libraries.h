// The vendor's libraries in plain loops: what libraries.h says they compute, and no more. For tests
// alone.
#pragma once

#include <memory>

#include "lib/cuda/libraries.h"

namespace ckplan::cuda {

std::unique_ptr<Libraries> MakeHostLibraries();

}  // namespace ckplan::cuda
