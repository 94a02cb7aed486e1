// The request that tests of the planner begin with.
#pragma once

#include <string>
#include <string_view>

#include "lib/planning/plan/request.h"

namespace ckplan {

inline PlanRequest RequestFor(std::string_view algorithm, const Budget& budget) {
  PlanRequest request;
  request.algorithm = std::string(algorithm);
  request.budget = budget;
  return request;
}

}  // namespace ckplan
