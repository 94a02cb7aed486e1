// Reads small arrays from NumPy's .npy files, for `--set INPUT=@FILE.npy`.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

// Returns the array as nested lists, "[[1,0],[1,1]]", or one number for an array without
// dimensions. kInvalidInput: the bytes are not a .npy file, or are cut off. kUnsupported: a type
// other than booleans, integers, float32 and float64, numbers in big-endian order, an array in
// Fortran's order, or more than kMaxSetNumbers (lib/planning/plan/set_input.h) elements.
Result<std::string> NpyAsText(std::string_view bytes, const std::string& path);

}  // namespace ckplan
