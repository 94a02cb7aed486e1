#include "lib/problem/ops/lstm.h"

namespace ckplan {

Result<LstmShape> ReadLstmShape(const OpSpec& spec) { return ReadRecurrentShape(spec, 4); }

std::span<const FamilyRow> LstmFamily() {
  static constexpr FamilyRow kRows[] = {
      {"LSTM", JudgeBy<ReadLstmShape>, "default activations, no peepholes, clipping or lengths"}};
  return kRows;
}

}  // namespace ckplan
