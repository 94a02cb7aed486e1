#include "lib/problem/ops/reverse.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/layout.h"

namespace ckplan {

Result<ReverseShape> ReadReverseShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 2));
  const Dims& dims = spec.input(0).dims;
  const int64_t time = spec.Int("time_axis", 0);
  const int64_t batch = spec.Int("batch_axis", 1);
  const bool are_first_two = (time == 0 && batch == 1) || (time == 1 && batch == 0);
  if (dims.size() < 2 || !are_first_two) {
    return InvalidOp(spec, fmt::format("its batch axis {} and time axis {} are not the first two "
                                       "of its {} axes",
                                       batch, time, dims.size()));
  }
  ReverseShape shape{dims[0], dims[1], Product(Dims(dims.begin() + 2, dims.end())), time == 0};
  const Operand& lengths = spec.input(1);
  CKPLAN_RETURN_IF_ERROR(
      RequireElements(spec, lengths, "its list of lengths", time == 0 ? dims[1] : dims[0]));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, lengths, "its list of lengths", ElementType::kInt64));
  return shape;
}

std::span<const FamilyRow> ReverseFamily() {
  static constexpr FamilyRow kRows[] = {{"ReverseSequence", JudgeBy<ReadReverseShape>}};
  return kRows;
}

}  // namespace ckplan
