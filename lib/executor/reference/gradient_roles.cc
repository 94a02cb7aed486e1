#include "lib/executor/reference/gradient_roles.h"

#include <algorithm>

#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_rules.h"

namespace ckplan::reference {

namespace {

void SetStatistic(OpSpec& spec, Autograd autograd) {
  std::vector<bool> is_stored;
  for (const Operand& output : spec.outputs) is_stored.push_back(output.is_present);
  if (const auto saved = StatisticOf(spec, autograd, is_stored)) {
    spec.statistic_bytes = saved->bytes.count();
  } else if (OutputServesAsStatistic(spec)) {
    spec.outputs[1].is_read_by_backward = true;
  }
}

void MarkReads(OpSpec& spec, Autograd autograd) {
  const BackwardReads reads = FindBackwardReads(spec, autograd);
  for (const size_t i : reads.inputs) spec.inputs[i].is_read_by_backward = true;
  for (const size_t i : reads.outputs) {
    spec.outputs[i].is_read_by_backward = spec.outputs[i].is_present;
  }
  if (reads.statistic) SetStatistic(spec, autograd);
}

}  // namespace

void SetGradientRoles(OpSpec& spec, const std::vector<bool>& wants,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives,
                      Autograd autograd) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    spec.inputs[i].has_gradient = wants[i];
    spec.inputs[i].is_read_by_backward = is_constant[i] && spec.inputs[i].is_present;
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    spec.outputs[i].has_gradient = arrives[i];
    spec.outputs[i].is_read_by_backward = false;
  }
  spec.statistic_bytes = 0;
  if (std::find(wants.begin(), wants.end(), true) != wants.end()) MarkReads(spec, autograd);
}

OpSpec SpecOfCase(const CaseRow& row, Autograd autograd) {
  OpCase parsed = ParseCase(row);
  std::vector<bool> wants, is_constant, arrives;
  for (size_t i = 0; i < parsed.contents.size(); ++i) {
    wants.push_back(parsed.contents[i].wants_gradient && IsDifferentiable(parsed.spec, i));
    is_constant.push_back(parsed.contents[i].is_constant);
  }
  const bool has_any = std::find(wants.begin(), wants.end(), true) != wants.end();
  for (const Operand& output : parsed.spec.outputs) {
    arrives.push_back(has_any && output.is_present && IsFloat(output.type));
  }
  SetGradientRoles(parsed.spec, wants, is_constant, arrives, autograd);
  return std::move(parsed.spec);
}

}  // namespace ckplan::reference
