// The container of device code in nvcc's objects.
#pragma once

#include <string_view>

#include "lib/base/result.h"

namespace ckplan::ptx {

// Returns the first PTX text. Fails if there is none, or if it is compressed.
Result<std::string_view> PtxIn(const unsigned char* container);

}  // namespace ckplan::ptx
