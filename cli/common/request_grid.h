// Several requests in one command line: "-D N=8,16 --budget 40%,60%" asks for four.
#pragma once

#include <string>
#include <vector>

#include "cli/common/request_flags.h"
#include "lib/base/result.h"
#include "lib/planning/plan/request.h"

namespace ckplan {

struct TypedBudget {
  std::string text;  // "60%"; empty if no budget was typed.
  Budget budget;
};

struct RequestGrid {
  PlanRequest request;               // The first one. The others differ in what follows.
  std::vector<DimSizes> sizes;       // One for each combination of sizes, in the order typed.
  std::string budget_field;          // "budget" or "added_time"; empty if no budget was typed.
  std::vector<TypedBudget> budgets;  // In the order typed.

  // Returns the first request with other sizes, or with another budget.
  PlanRequest With(const DimSizes& dims) const;
  PlanRequest With(const TypedBudget& budget, PlanRequest other) const;
};

// Reads all that the flags say. Both lists have at least one element, and none twice. Each file
// that is named is read once. kUsage: as of RequestFlags::Read and EachCombinationOfDims.
Result<RequestGrid> ReadGrid(const RequestFlags& flags);

}  // namespace ckplan
