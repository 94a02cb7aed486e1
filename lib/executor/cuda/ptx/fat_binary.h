// The container of device code in nvcc's objects.
#pragma once

#include <string>

#include "lib/base/result.h"

namespace ckplan::ptx {

// Returns the first PTX text. nvcc compresses it by Zstandard, unless an option forbids it
// (--no-compress). Fails if there is no PTX, if it is compressed in another way, as by older
// versions of nvcc, or if libzstd.so.1, which decompresses it, is not installed.
Result<std::string> PtxIn(const unsigned char* container);

}  // namespace ckplan::ptx
