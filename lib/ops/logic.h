// Comparisons, boolean and bitwise logic, and the choice by a condition.
#pragma once

#include <span>

#include "lib/ops/families.h"

namespace ckplan {

std::span<const FamilyRow> LogicFamily();

}  // namespace ckplan
