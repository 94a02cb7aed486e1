// The vendor's libraries as plain loops that implement exactly the contract of libraries.h. Only
// tests use them.
#pragma once

#include <memory>

#include "lib/cuda/libraries.h"

namespace ckplan::cuda {

std::unique_ptr<Libraries> MakeHostLibraries();

}  // namespace ckplan::cuda
