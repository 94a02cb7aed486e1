#include "lib/planning/algorithms/best/required_ops.h"

namespace ckplan {

std::vector<bool> RequiredOps(const RunProblem& problem) {
  std::vector<bool> is_required = problem.is_needed;
  for (int32_t op = problem.op_count - 1; op >= 0; --op) {
    if (!is_required[static_cast<size_t>(op)]) continue;
    for (const int32_t read : problem.reads[op]) {
      is_required[static_cast<size_t>(problem.maker[static_cast<size_t>(read)])] = true;
    }
  }
  return is_required;
}

Runs RequiredOwnOrder(const RunProblem& problem) {
  const std::vector<bool> is_required = RequiredOps(problem);
  Runs order;
  for (int32_t op = 0; op < problem.op_count; ++op) {
    if (is_required[static_cast<size_t>(op)]) order.emplace_back(op);
  }
  return order;
}

}  // namespace ckplan
