#include "lib/problem/ops/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/base/checked.h"
#include "lib/problem/ops/common_attributes.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

constexpr std::span<const FamilyRow> (*kFamilies[])() = {
#define CKPLAN_FAMILY(Name) Name##Family,
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
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

// No tensor that fits on a machine has more elements. Below this limit, kernels and shapes multiply
// sizes by small numbers and by sizes of another operand without checking for overflow.
constexpr int64_t kMaxElements = int64_t{1} << 44;

Result<Done> JudgeSizes(const OpSpec& spec, const Operand& operand, std::string_view name) {
  if (!operand.is_present) return Done{};
  int64_t elements = 1;
  for (const int64_t dim : operand.dims) {
    if (dim < 0) {
      return InvalidOp(spec, fmt::format("{} has a negative size: {}", name, TextOf(operand.dims)));
    }
    // An axis of size 0 must not hide the other sizes, because strides are their products.
    elements = CheckedMul(elements, std::max<int64_t>(1, dim)).value_or(kMaxElements + 1);
    if (elements <= kMaxElements) continue;
    return UnsupportedOp(spec, fmt::format("{} is {}, which is more than {} elements", name,
                                           TextOf(operand.dims), kMaxElements));
  }
  return Done{};
}

}  // namespace

Result<Done> JudgeAttributes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(JudgeCommonAttributes(spec));
  const FamilyRow* const row = FindFamilyRow(spec.type);
  if (row == nullptr || row->judge_attributes == nullptr) return Done{};
  return row->judge_attributes(spec);
}

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

std::string JoinLimits(std::string_view common, std::string_view own) {
  return fmt::format("{}{}{}", common, common.empty() || own.empty() ? "" : "; ", own);
}

Result<Done> JudgeOp(const OpSpec& spec) {
  const FamilyRow* row = FindFamilyRow(spec.type);
  if (row == nullptr) return UnsupportedOp(spec, "it has no kernel for this operator");
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(JudgeSizes(spec, spec.inputs[i], fmt::format("input {}", i)));
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(JudgeSizes(spec, spec.outputs[i], fmt::format("output {}", i)));
  }
  return row->judge(spec);
}

}  // namespace ckplan
