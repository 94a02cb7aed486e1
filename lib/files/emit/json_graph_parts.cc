#include "lib/files/emit/json_graph_parts.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "lib/base/units.h"

namespace ckplan {

namespace {

constexpr const char* kOptimizedKey = "optimized_tensors";

// Returns nothing after a fault.
std::optional<OptimizedTensors> ReadOptimizedRow(const JsonView& json) {
  if (!json.is_array() || json.size() != 3) {
    json.Fault("must be a triple [elements, bytes of an element, tensors]");
    return std::nullopt;
  }
  const OptimizedTensors row{json.at(0).Integer(), json.at(1).Integer(), json.at(2).Integer()};
  if (row.elements >= 1 && row.count >= 1 && row.element_bytes >= 1 &&
      row.element_bytes <= kMaxElementBytes) {
    return row;
  }
  json.Fault(fmt::format("all three must be at least 1, and an element has at most {} bytes",
                         kMaxElementBytes));
  return std::nullopt;
}

}  // namespace

void WriteOptimizedTensors(const std::vector<OptimizedTensors>& tensors, JsonWriter* json) {
  json->Key(kOptimizedKey).BeginArray(JsonLayout::kWrapped);
  for (const OptimizedTensors& row : tensors) {
    json->BeginArray(JsonLayout::kInline);
    json->Integer(row.elements).Integer(row.element_bytes).Integer(row.count).End();
  }
  json->End();
}

std::optional<std::vector<OptimizedTensors>> ReadOptimizedTensors(const JsonView& root,
                                                                  Bytes gradients) {
  if (!root.has(kOptimizedKey)) return std::nullopt;
  std::vector<OptimizedTensors> tensors;
  const JsonView list = root[kOptimizedKey];
  std::optional<int64_t> total = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<OptimizedTensors> row = ReadOptimizedRow(list.at(i));
    if (!row) return std::nullopt;
    const auto each = CheckedMul(row->elements, row->element_bytes);
    const auto all = each ? CheckedMul(*each, row->count) : std::nullopt;
    total = total && all ? CheckedAdd(*total, *all) : std::nullopt;
    tensors.push_back(*row);
  }
  if (!total || *total > gradients.count()) {
    list.Fault(
        fmt::format("these tensors need more than the {} bytes of what may be their gradients",
                    gradients.count()));
    return std::nullopt;
  }
  return Merged(std::move(tensors));
}

}  // namespace ckplan
