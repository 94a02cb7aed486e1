// Elementwise operators with any number of inputs, all broadcast to the output: sums, means, minima
// and maxima.

#include <fmt/format.h>

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

Result<Done> JudgeExtreme(const OpSpec& spec) {
  if (spec.inputs.empty()) return InvalidOp(spec, "it has no inputs");
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, spec.inputs.size()));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its first input"));
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(
        RequireType(spec, spec.input(i), fmt::format("input {}", i), spec.input(0).type));
  }
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> JudgeSum(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(JudgeExtreme(spec));
  return RequireFloat(spec, spec.input(0), "its first input");
}

}  // namespace

std::span<const FamilyRow> NaryFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Sum", JudgeSum},
      {"Mean", JudgeSum},
      {"Max", JudgeExtreme},
      {"Min", JudgeExtreme},
  };
  return kRows;
}

}  // namespace ckplan
