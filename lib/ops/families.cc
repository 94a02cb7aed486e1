#include "lib/ops/families.h"

#include <algorithm>
#include <vector>

#include "lib/ops/attention.h"
#include "lib/ops/batch_norm.h"
#include "lib/ops/conv.h"
#include "lib/ops/einsum.h"
#include "lib/ops/group_norm.h"
#include "lib/ops/gru.h"
#include "lib/ops/layer_norm.h"
#include "lib/ops/loss.h"
#include "lib/ops/lp_norm.h"
#include "lib/ops/lrn.h"
#include "lib/ops/lstm.h"
#include "lib/ops/matmul.h"
#include "lib/ops/mean_variance_norm.h"
#include "lib/ops/pool.h"
#include "lib/ops/rotary_shape.h"
#include "lib/ops/softmax.h"

namespace ckplan {

namespace {

// One line for each family.
// clang-format off
constexpr std::span<const FamilyRow> (*kFamilies[])() = {
    AttentionFamily,
    BatchNormFamily,
    ConvFamily,
    EinsumFamily,
    GroupNormFamily,
    GruFamily,
    LayerNormFamily,
    LossFamily,
    LpNormFamily,
    LrnFamily,
    LstmFamily,
    MatMulFamily,
    MeanVarianceNormFamily,
    PoolFamily,
    RotaryFamily,
    SoftmaxFamily,
};
// clang-format on

std::vector<FamilyRow> SortedRows() {
  std::vector<FamilyRow> rows;
  for (const auto family : kFamilies) {
    const std::span<const FamilyRow> own = family();
    rows.insert(rows.end(), own.begin(), own.end());
  }
  std::sort(rows.begin(), rows.end(),
            [](const FamilyRow& a, const FamilyRow& b) { return a.type < b.type; });
  return rows;
}

}  // namespace

std::span<const FamilyRow> AllFamilyRows() {
  static const std::vector<FamilyRow> rows = SortedRows();
  return rows;
}

const FamilyRow* FindFamilyRow(std::string_view type) {
  const auto rows = AllFamilyRows();
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), type,
                       [](const FamilyRow& row, std::string_view t) { return row.type < t; });
  return found == rows.end() || found->type != type ? nullptr : &*found;
}

Result<Done> JudgeOp(const OpSpec& spec) {
  const FamilyRow* row = FindFamilyRow(spec.type);
  if (row == nullptr) return UnsupportedOp(spec, "it has no kernel for this operator");
  return row->judge(spec);
}

}  // namespace ckplan
