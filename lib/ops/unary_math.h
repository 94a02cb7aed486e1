// Functions of one number that are no activations.
#pragma once

#include <span>

#include "lib/ops/families.h"

namespace ckplan {

std::span<const FamilyRow> UnaryMathFamily();

}  // namespace ckplan
