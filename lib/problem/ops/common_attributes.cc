#include "lib/problem/ops/common_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <variant>
#include <vector>

namespace ckplan {

namespace {

// Operands with one number for each axis of the output, of an input, or of a part of its axes.
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

// Far above what runtimes allow. Pads and regions have two numbers for each axis.
constexpr int64_t kMostAxisNumbers = 1024;

// Rules of shape inference loop over these numbers even where their values are unknown.
Result<Done> JudgeAxisLists(const OpSpec& spec) {
  for (const AxisList& list : kAxisLists) {
    if (list.type != spec.type) continue;
    const Operand& operand = spec.input(list.operand);
    if (!operand.is_present || operand.dims.size() != 1) continue;
    if (operand.dims[0] <= kMostAxisNumbers) continue;
    return InvalidOp(spec, fmt::format("input {} has {} numbers, one for each axis; at most {} "
                                       "are allowed",
                                       list.operand, operand.dims[0], kMostAxisNumbers));
  }
  return Done{};
}

// Returns the attribute's integers: one, or a list.
std::vector<int64_t> IntegersOf(const AttributeValue& value) {
  if (const auto* one = std::get_if<int64_t>(&value)) return {*one};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return *list;
  return {};
}

// Attributes whose lists are contents, and may have any length.
bool IsContents(std::string_view type) { return type == "Constant" || type == "TfIdfVectorizer"; }

Result<Done> JudgeLengths(const OpSpec& spec) {
  if (IsContents(spec.type)) return Done{};
  for (const auto& [name, value] : spec.attributes) {
    const auto* list = std::get_if<std::vector<int64_t>>(&value);
    if (list == nullptr || list->size() <= static_cast<size_t>(kMostAxisNumbers)) continue;
    return InvalidOp(spec, fmt::format("attribute {} has {} numbers; at most {} are allowed", name,
                                       list->size(), kMostAxisNumbers));
  }
  return Done{};
}

// An operator may add axes, as many as it names: one for `axis`. Its own rule knows more.
Result<Done> JudgeAxes(const OpSpec& spec) {
  const Operand& operand = spec.input(0);
  for (const std::string_view name : {"axis", "axes"}) {
    const auto found = spec.attributes.find(name);
    if (found == spec.attributes.end()) continue;
    const std::vector<int64_t> axes = IntegersOf(found->second);
    const auto rank =
        operand.is_present ? static_cast<int64_t>(operand.dims.size()) : kMostAxisNumbers;
    const int64_t most = rank + static_cast<int64_t>(axes.size());
    for (const int64_t axis : axes) {
      if (axis >= -most && axis <= most) continue;
      return InvalidOp(
          spec,
          operand.is_present
              ? fmt::format("attribute {} names axis {}, but input 0 has {} axes", name, axis, rank)
              : fmt::format("attribute {} names axis {}, which no tensor has", name, axis));
    }
  }
  return Done{};
}

// Counts, and lists of them, that have a least value. The judges of families refuse a group or
// dilations of 0, with the sizes involved.
struct CountRule {
  std::string_view name;
  int64_t least = 0;
};

constexpr CountRule kCounts[] = {
    {"batch_dims", 0},      {"blocksize", 1},    {"dilations", 0},    {"group", 0},
    {"hidden_size", 0},     {"kernel_shape", 1}, {"kv_num_heads", 0}, {"num_groups", 1},
    {"num_heads", 0},       {"num_outputs", 1},  {"q_num_heads", 0},  {"rotary_embedding_dim", 0},
    {"num_scan_inputs", 1}, {"strides", 1},
};
constexpr int64_t kMostCount = std::numeric_limits<int32_t>::max();

Result<Done> JudgeCounts(const OpSpec& spec) {
  for (const CountRule& rule : kCounts) {
    const auto found = spec.attributes.find(rule.name);
    if (found == spec.attributes.end()) continue;
    for (const int64_t number : IntegersOf(found->second)) {
      if (number >= rule.least && number <= kMostCount) continue;
      return InvalidOp(spec, fmt::format("attribute {} is {}; it must be from {} to {}", rule.name,
                                         number, rule.least, kMostCount));
    }
  }
  return Done{};
}

}  // namespace

Result<Done> JudgeCommonAttributes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(JudgeAxisLists(spec));
  CKPLAN_RETURN_IF_ERROR(JudgeLengths(spec));
  CKPLAN_RETURN_IF_ERROR(JudgeAxes(spec));
  return JudgeCounts(spec);
}

}  // namespace ckplan
