// The operators of the CPU backend by family, one file each in ops/. registry.cc joins them.
#pragma once

#include <span>

#include "lib/executor/cpu/registry.h"

namespace ckplan::cpu {

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

}  // namespace ckplan::cpu
