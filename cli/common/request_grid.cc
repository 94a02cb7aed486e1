#include "cli/common/request_grid.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "lib/planning/plan/request_fields.h"

namespace ckplan {
namespace {

Budget& BudgetIn(PlanRequest& request, const std::string& field) {
  return request.*std::get<Budget PlanRequest::*>(FieldOf(field).member);
}

}  // namespace

PlanRequest RequestGrid::With(const DimSizes& dims) const {
  PlanRequest other = request;
  other.dims = dims;
  return other;
}

PlanRequest RequestGrid::With(const TypedBudget& budget, PlanRequest other) const {
  if (!budget_field.empty()) BudgetIn(other, budget_field) = budget.budget;
  return other;
}

Result<RequestGrid> ReadGrid(const RequestFlags& flags) {
  RequestGrid grid;
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<RequestFlags> sized, flags.EachCombinationOfDims());
  const std::vector<RequestFlags> limited = sized.front().EachBudget();
  CKPLAN_ASSIGN_OR_RETURN(grid.request, limited.front().Read());
  for (const RequestFlags& one : sized) {
    PlanRequest other;
    CKPLAN_RETURN_IF_ERROR(one.ReadField("dims", &other));
    const bool is_known =
        std::find(grid.sizes.begin(), grid.sizes.end(), other.dims) != grid.sizes.end();
    if (!is_known) grid.sizes.push_back(std::move(other.dims));
  }
  grid.budget_field = flags.BudgetField();
  if (grid.budget_field.empty()) {
    grid.budgets.emplace_back();
    return grid;
  }
  for (const RequestFlags& one : limited) {
    PlanRequest other;
    CKPLAN_RETURN_IF_ERROR(one.ReadField(grid.budget_field, &other));
    grid.budgets.push_back({*one.ValueOf(grid.budget_field), BudgetIn(other, grid.budget_field)});
  }
  return grid;
}

}  // namespace ckplan
