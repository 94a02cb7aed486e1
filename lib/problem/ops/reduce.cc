#include "lib/problem/ops/reduce.h"

#include <optional>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

// Returns, for each axis of the input, whether it is reduced.
Result<std::vector<bool>> ReducedAxes(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> axes, KnownInts(spec, 1, "axes"));
  if (!axes.has_value() || axes->empty()) {
    return std::vector<bool>(rank, spec.Int("noop_with_empty_axes", 0) == 0);
  }
  std::vector<bool> is_reduced(rank, false);
  for (const int64_t axis : *axes) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t normal, NormalAxis(spec, axis, rank));
    is_reduced[normal] = true;
  }
  return is_reduced;
}

// Every backend defines these reductions, and no others, for integers.
bool TakesIntegers(const OpSpec& spec) {
  for (const char* type : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"}) {
    if (spec.type == type) return true;
  }
  return false;
}

Result<Done> JudgeReducedTypes(const OpSpec& spec) {
  if (TakesIntegers(spec)) {
    CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  } else {
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  }
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

}  // namespace

Result<ReduceShape> ReadReduceShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  CKPLAN_RETURN_IF_ERROR(JudgeReducedTypes(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<bool> is_reduced, ReducedAxes(spec));
  const Dims& dims = spec.input(0).dims;
  const bool keeps_axes = spec.Int("keepdims", 1) != 0;
  Dims with_ones = dims;
  Dims expected;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (is_reduced[axis]) with_ones[axis] = 1;
    if (keeps_axes || !is_reduced[axis]) expected.push_back(with_ones[axis]);
  }
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", expected));
  return ReduceShape{Collapse(dims, {RowMajorStrides(dims), BroadcastStrides(with_ones, dims)}),
                     spec.output(0).elements(), spec.input(0).elements()};
}

std::span<const FamilyRow> ReduceFamily() {
  static constexpr FamilyRow kRows[] = {
      {"ReduceSum", JudgeBy<ReadReduceShape>},    {"ReduceMean", JudgeBy<ReadReduceShape>},
      {"ReduceMax", JudgeBy<ReadReduceShape>},    {"ReduceMin", JudgeBy<ReadReduceShape>},
      {"ReduceProd", JudgeBy<ReadReduceShape>},   {"ReduceL1", JudgeBy<ReadReduceShape>},
      {"ReduceL2", JudgeBy<ReadReduceShape>},     {"ReduceSumSquare", JudgeBy<ReadReduceShape>},
      {"ReduceLogSum", JudgeBy<ReadReduceShape>}, {"ReduceLogSumExp", JudgeBy<ReadReduceShape>},
  };
  return kRows;
}

}  // namespace ckplan
