// Clip, whose limits may be inputs, and the changes of element type.
#pragma once

#include <span>

#include "lib/ops/families.h"

namespace ckplan {

std::span<const FamilyRow> ClipCastFamily();

}  // namespace ckplan
