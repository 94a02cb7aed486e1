// Clip, whose limits may be inputs, and the changes of element type.

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

// Checks one of the limits, input 1 or 2, which may be absent.
Result<Done> JudgeLimit(const OpSpec& spec, size_t position) {
  const Operand& limit = spec.input(position);
  if (!limit.is_present) return Done{};
  const std::string_view name = position == 1 ? "its lower limit" : "its upper limit";
  CKPLAN_RETURN_IF_ERROR(RequireElements(spec, limit, name, 1));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, limit, name, spec.input(0).type));
  if (spec.input(0).has_gradient && !limit.is_read_by_backward) {
    return UnsupportedOp(spec, "its limits are computed during the step");
  }
  return Done{};
}

Result<Done> JudgeClip(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  CKPLAN_RETURN_IF_ERROR(JudgeLimit(spec, 1));
  CKPLAN_RETURN_IF_ERROR(JudgeLimit(spec, 2));
  if (!IsFloat(spec.input(0).type) && (spec.Has("min") || spec.Has("max"))) {
    return InvalidOp(spec, "its limits are attributes, which are floats, and its input is not");
  }
  return Done{};
}

}  // namespace

std::span<const FamilyRow> ClipCastFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Clip", JudgeClip, "gradient only where the limits are constant"},
      {"Cast", RequireSameDims},
      {"CastLike", RequireSameDims},
  };
  return kRows;
}

}  // namespace ckplan
