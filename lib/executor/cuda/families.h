// The operators of the CUDA backend by family, one or two files each in ops/. registry.cc joins
// them.
#pragma once

#include <span>

#include "lib/executor/cuda/registry.h"

namespace ckplan::cuda {

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

}  // namespace ckplan::cuda
