#include "lib/problem/ops/gru.h"

namespace ckplan {

Result<GruShape> ReadGruShape(const OpSpec& spec) {
  GruShape shape;
  CKPLAN_ASSIGN_OR_RETURN(static_cast<RecurrentShape&>(shape), ReadRecurrentShape(spec, 3));
  shape.resets_after = spec.Int("linear_before_reset", 0) != 0;
  return shape;
}

std::span<const FamilyRow> GruFamily() {
  static constexpr FamilyRow kRows[] = {
      {"GRU", JudgeBy<ReadGruShape>, "default activations, no clipping or lengths"}};
  return kRows;
}

}  // namespace ckplan
