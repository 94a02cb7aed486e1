// Elementwise operators of any number of inputs, all broadcast to the output: sums and extremes.
#pragma once

#include <span>

#include "lib/ops/families.h"

namespace ckplan {

std::span<const FamilyRow> NaryFamily();

}  // namespace ckplan
