#include "lib/ops/families.h"

#include <algorithm>
#include <vector>

#include "lib/ops/rotary_shape.h"

namespace ckplan {

namespace {

// One line for each family.
constexpr std::span<const FamilyRow> (*kFamilies[])() = {
    RotaryFamily,
};

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
