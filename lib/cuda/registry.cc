#include "lib/cuda/registry.h"

#include <algorithm>
#include <vector>

#include "lib/cuda/families.h"

namespace ckplan::cuda {

namespace {

constexpr std::span<const OpRow> (*kFamilies[])() = {
#define CKPLAN_FAMILY(Name) Name##Ops,
#include "lib/ops/families.def"
#undef CKPLAN_FAMILY
};

std::vector<OpRow> SortedRows() {
  std::vector<OpRow> rows;
  for (const auto family : kFamilies) {
    const std::span<const OpRow> own = family();
    rows.insert(rows.end(), own.begin(), own.end());
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
  return UnsupportedOp(spec, "cuda", what);
}

}  // namespace ckplan::cuda
