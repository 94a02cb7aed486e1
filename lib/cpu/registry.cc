#include "lib/cpu/registry.h"

#include <algorithm>
#include <vector>

#include "lib/cpu/dnn_families.h"
#include "lib/cpu/families.h"

namespace ckplan::cpu {

namespace {

std::vector<OpRow> SortedRows() {
  std::vector<OpRow> rows;
  for (const auto family :
       {ActivationOps(), UnaryMathOps(), ClipCastOps(), BinaryOps(), NaryOps(),     LogicOps(),
        ReduceOps(),     ScanOps(),      MoveOps(),     JoinOps(),   GenerateOps(), ResizeOps(),
        PadOps(),        GatherOps(),    ElementOps(),  RandomOps(), RotaryOps(),   TopKOps(),
        LpNormOps(),     ReverseOps(),   LossOps()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  for (const auto family : {ConvOps(), BatchNormOps(), PoolOps(), MatMulOps(), SoftmaxOps(),
                            LayerNormOps(), GroupNormOps(), LrnOps(), LstmOps(), GruOps(),
                            AttentionOps(), EinsumOps(), MeanVarianceNormOps()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  std::sort(rows.begin(), rows.end(),
            [](const OpRow& a, const OpRow& b) { return a.type < b.type; });
  return rows;
}

}  // namespace

std::span<const OpRow> OpRows() {
  static const std::vector<OpRow> rows = SortedRows();
  return rows;
}

const OpRow* FindOp(std::string_view type) {
  const auto rows = OpRows();
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), type,
                       [](const OpRow& row, std::string_view t) { return row.type < t; });
  return found == rows.end() || found->type != type ? nullptr : &*found;
}

Error Unsupported(const OpSpec& spec, std::string_view what) {
  return UnsupportedOp(spec, "cpu", what);
}

}  // namespace ckplan::cpu
