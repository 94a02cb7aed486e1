#include "lib/problem/ops/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/ops/op_checks.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

namespace {

// Rules for attributes and operands that mean the same in every operator: axes, lists with a number
// per axis, windows and counts. They do not need the output, so that they can run before ONNX's
// shape inference, which trusts such numbers as positions and lengths.
//
// Operands with one number for each axis of a tensor, or for some of its axes.
struct AxisList {
  std::string_view type;
  size_t operand = 0;
};

constexpr AxisList kAxisLists[] = {
    {"AffineGrid", 1}, {"CenterCropPad", 1},   {"Col2Im", 1},  {"Col2Im", 2}, {"Expand", 1},
    {"MaxUnpool", 2},  {"ConstantOfShape", 0}, {"Pad", 1},     {"Pad", 3},    {"Reshape", 1},
    {"Resize", 1},     {"Resize", 2},          {"Resize", 3},  {"Slice", 1},  {"Slice", 2},
    {"Slice", 3},      {"Slice", 4},           {"Squeeze", 1}, {"Tile", 1},   {"Unsqueeze", 1},
    {"Upsample", 1},
};

// Far above the limits of runtimes. Pads and regions have two numbers per axis.
constexpr int64_t kMaxAxisNumbers = 1024;

// Shape inference loops over these lists even if their values are unknown.
Result<Done> ValidateAxisLists(const OpSpec& spec) {
  for (const AxisList& list : kAxisLists) {
    if (list.type != spec.type) continue;
    const Operand& operand = spec.input(list.operand);
    if (!operand.is_present || operand.dims.size() != 1) continue;
    if (operand.dims[0] <= kMaxAxisNumbers) continue;
    return InvalidOp(spec, fmt::format("input {} has {} numbers, one for each axis; at most {} "
                                       "are allowed",
                                       list.operand, operand.dims[0], kMaxAxisNumbers));
  }
  return Done{};
}

// Returns the attribute's integer, or its list of integers.
std::vector<int64_t> IntegersOf(const AttributeValue& value) {
  if (const auto* one = std::get_if<int64_t>(&value)) return {*one};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return *list;
  return {};
}

// Returns true if the operator's list attributes hold data and may have any length.
bool ListsAreContents(std::string_view type) {
  return type == "Constant" || type == "TfIdfVectorizer";
}

Result<Done> ValidateLengths(const OpSpec& spec) {
  if (ListsAreContents(spec.type)) return Done{};
  for (const auto& [name, value] : spec.attributes) {
    const auto* list = std::get_if<std::vector<int64_t>>(&value);
    if (list == nullptr || list->size() <= static_cast<size_t>(kMaxAxisNumbers)) continue;
    return InvalidOp(spec, fmt::format("attribute {} has {} numbers; at most {} are allowed", name,
                                       list->size(), kMaxAxisNumbers));
  }
  return Done{};
}

// Allows for axes that the operator adds, at most one for each axis it names. The operator's own
// rule is stricter.
Result<Done> ValidateAxes(const OpSpec& spec) {
  const Operand& operand = spec.input(0);
  for (const std::string_view name : {"axis", "axes"}) {
    const auto found = spec.attributes.find(name);
    if (found == spec.attributes.end()) continue;
    const std::vector<int64_t> axes = IntegersOf(found->second);
    const auto rank =
        operand.is_present ? static_cast<int64_t>(operand.dims.size()) : kMaxAxisNumbers;
    const int64_t max_axis = rank + static_cast<int64_t>(axes.size());
    for (const int64_t axis : axes) {
      if (axis >= -max_axis && axis <= max_axis) continue;
      return InvalidOp(
          spec,
          operand.is_present
              ? fmt::format("attribute {} names axis {}, but input 0 has {} axes", name, axis, rank)
              : fmt::format("attribute {} names axis {}, which no tensor has", name, axis));
    }
  }
  return Done{};
}

// Attributes that are counts or lists of counts, with their minimum. The families refuse a group or
// dilations of 0 themselves, with a message that has the sizes.
struct CountRule {
  std::string_view name;
  int64_t min = 0;
};

constexpr CountRule kCounts[] = {
    {"batch_dims", 0},      {"blocksize", 1},    {"dilations", 0},    {"group", 0},
    {"hidden_size", 0},     {"kernel_shape", 1}, {"kv_num_heads", 0}, {"num_groups", 1},
    {"num_heads", 0},       {"num_outputs", 1},  {"q_num_heads", 0},  {"rotary_embedding_dim", 0},
    {"num_scan_inputs", 1}, {"strides", 1},
};
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

Result<Done> ValidateCounts(const OpSpec& spec) {
  for (const CountRule& rule : kCounts) {
    const auto found = spec.attributes.find(rule.name);
    if (found == spec.attributes.end()) continue;
    for (const int64_t number : IntegersOf(found->second)) {
      if (number >= rule.min && number <= kMaxCount) continue;
      return InvalidOp(spec, fmt::format("attribute {} is {}; it must be from {} to {}", rule.name,
                                         number, rule.min, kMaxCount));
    }
  }
  return Done{};
}

// kInvalidInput: an attribute names an axis far outside its operand, a count or a part of a window
// is below its minimum or does not fit 32 bits, or a list has more entries than any tensor has
// axes. Operands of unknown shape are absent from the spec.
Result<Done> ValidateCommonAttributes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateAxisLists(spec));
  CKPLAN_RETURN_IF_ERROR(ValidateLengths(spec));
  CKPLAN_RETURN_IF_ERROR(ValidateAxes(spec));
  return ValidateCounts(spec);
}

constexpr std::span<const FamilyRow> (*kFamilies[])() = {
#define CKPLAN_FAMILY(Name) Name##Family,
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
};

std::vector<FamilyRow> ListSortedRows() {
  std::vector<FamilyRow> rows;
  for (const auto family : kFamilies) {
    const std::span<const FamilyRow> family_rows = family();
    rows.insert(rows.end(), family_rows.begin(), family_rows.end());
  }
  std::sort(rows.begin(), rows.end(),
            [](const FamilyRow& a, const FamilyRow& b) { return a.type < b.type; });
  return rows;
}

// More elements than fit on any machine. Below this limit, kernels and shapes multiply sizes by
// small numbers and by sizes of another operand without checking for overflow.
constexpr int64_t kMaxElements = int64_t{1} << 44;

Result<Done> ValidateSizes(const OpSpec& spec, const Operand& operand, std::string_view name) {
  if (!operand.is_present) return Done{};
  int64_t elements = 1;
  for (const int64_t dim : operand.dims) {
    if (dim < 0) {
      return InvalidOp(spec, fmt::format("{} has a negative size: {}", name, TextOf(operand.dims)));
    }
    // Counts size 0 as 1: strides are products of the other sizes, which must not overflow either.
    elements = CheckedMul(elements, std::max<int64_t>(1, dim)).value_or(kMaxElements + 1);
    if (elements <= kMaxElements) continue;
    return UnsupportedOp(spec, fmt::format("{} is {}, which is more than {} elements", name,
                                           TextOf(operand.dims), kMaxElements));
  }
  return Done{};
}

}  // namespace

Result<Done> ValidateAttributes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateCommonAttributes(spec));
  const FamilyRow* const row = FindFamilyRow(spec.type);
  if (row == nullptr || row->validate_attributes == nullptr) return Done{};
  return row->validate_attributes(spec);
}

std::span<const FamilyRow> AllFamilyRows() {
  static const std::vector<FamilyRow> rows = ListSortedRows();
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

Result<Done> ValidateOp(const OpSpec& spec) {
  const FamilyRow* row = FindFamilyRow(spec.type);
  if (row == nullptr) return UnsupportedOp(spec, "it has no kernel for this operator");
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(ValidateSizes(spec, spec.inputs[i], fmt::format("input {}", i)));
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(ValidateSizes(spec, spec.outputs[i], fmt::format("output {}", i)));
  }
  return row->validate(spec);
}

}  // namespace ckplan
