// Folds operators that only move elements: see fold.h.
#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/base/units.h"
#include "lib/files/model/fold_rules.h"

namespace ckplan::folding {

using onnx::NodeProto;

namespace {

std::optional<size_t> NormalAxis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < 0) axis += signed_rank;
  if (axis < 0 || axis >= signed_rank) return std::nullopt;
  return static_cast<size_t>(axis);
}

ElementMap InOrder(Dims dims, size_t count) {
  ElementMap map{std::move(dims), std::vector<size_t>(count)};
  std::iota(map.sources.begin(), map.sources.end(), size_t{0});
  return map;
}

// Visits all positions of a shape in row-major order.
template <typename Visit>
void ForEachPosition(const Dims& dims, Visit visit) {
  const auto count = static_cast<size_t>(*ElementCount(dims));
  std::vector<int64_t> position(dims.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    visit(position);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++position[axis] < dims[axis]) break;
      position[axis] = 0;
    }
  }
}

std::optional<ElementMap> Reshaped(const ConstantValue& data, Dims dims) {
  const auto count = ElementCount(dims);
  if (!count.has_value() || static_cast<size_t>(*count) != data.size()) return std::nullopt;
  return InOrder(std::move(dims), data.size());
}

struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Returns the positions that ONNX selects for starts, ends and steps beyond the axis.
SliceRange RangeOf(int64_t start, int64_t end, int64_t step, int64_t size) {
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? size : size - 1;
  const auto clamp = [&](int64_t place) {
    if (place < 0) place = place < -size ? lowest : place + size;
    return std::clamp(place, lowest, highest);
  };
  const int64_t first = clamp(start);
  const int64_t last = clamp(end);
  const int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {first, step, 0};
  // A step beyond the axis selects one element. Its negation can't overflow after this.
  const int64_t width = step > size ? size : step < -size ? size : (step > 0 ? step : -step);
  return {first, step > 0 ? width : -width, (distance + width - 1) / width};
}

}  // namespace

std::optional<ElementMap> MapReshape(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  Dims dims;
  if (inputs.size() > 1) {
    const ConstantValue* shape = Known(inputs, 1);
    if (shape == nullptr || shape->is_float()) return std::nullopt;
    dims = shape->ints;
  } else {
    dims = IntsAttribute(node, "shape");
  }
  const bool allows_zero = IntAttribute(node, "allowzero", 0) != 0;
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allows_zero) {
      if (i >= data.dims.size()) return std::nullopt;
      dims[i] = data.dims[i];
    }
    if (dims[i] < -1 || (dims[i] == -1 && open.has_value())) return std::nullopt;
    if (dims[i] == -1) {
      open = i;
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      return std::nullopt;
    }
  }
  if (open.has_value()) {
    if (known == 0) return std::nullopt;
    dims[*open] = static_cast<int64_t>(data.size()) / known;
  }
  return Reshaped(data, std::move(dims));
}

std::optional<ElementMap> MapSqueeze(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  const auto axes = ReadAxes(node, inputs, 1, data.dims.size());
  if (!axes.has_value()) return std::nullopt;
  Dims dims;
  for (size_t i = 0; i < data.dims.size(); ++i) {
    const bool is_named = std::find(axes->values.begin(), axes->values.end(),
                                    static_cast<int64_t>(i)) != axes->values.end();
    const bool is_dropped = axes->are_given ? is_named : data.dims[i] == 1;
    if (!is_dropped) dims.push_back(data.dims[i]);
  }
  return Reshaped(data, std::move(dims));
}

std::optional<ElementMap> MapUnsqueeze(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  const size_t added = inputs.size() > 1
                           ? (inputs[1].value == nullptr ? 0 : inputs[1].value->size())
                           : IntsAttribute(node, "axes").size();
  const size_t rank = data.dims.size() + added;
  auto axes = ReadAxes(node, inputs, 1, rank);
  if (!axes.has_value() || !axes->are_given) return std::nullopt;
  std::sort(axes->values.begin(), axes->values.end());
  Dims dims = data.dims;
  for (const int64_t axis : axes->values) {
    if (axis > static_cast<int64_t>(dims.size())) return std::nullopt;
    dims.insert(dims.begin() + axis, 1);
  }
  return Reshaped(data, std::move(dims));
}

std::optional<ElementMap> MapFlatten(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  const auto rank = static_cast<int64_t>(data.dims.size());
  int64_t axis = IntAttribute(node, "axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return std::nullopt;
  const Dims head(data.dims.begin(), data.dims.begin() + axis);
  const Dims tail(data.dims.begin() + axis, data.dims.end());
  return Reshaped(data, {*ElementCount(head), *ElementCount(tail)});
}

std::optional<ElementMap> MapTranspose(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  const size_t rank = data.dims.size();
  std::vector<int64_t> order = IntsAttribute(node, "perm");
  if (order.empty()) {
    for (size_t i = rank; i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  if (order.size() != rank) return std::nullopt;
  ElementMap map;
  std::vector<int64_t> strides;
  const std::vector<int64_t> source_strides = StridesOf(data.dims);
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    map.dims.push_back(data.dims[static_cast<size_t>(axis)]);
    strides.push_back(source_strides[static_cast<size_t>(axis)]);
  }
  if (ElementCount(map.dims) != ElementCount(data.dims)) return std::nullopt;
  ForEachPosition(map.dims, [&](const std::vector<int64_t>& position) {
    map.sources.push_back(static_cast<size_t>(
        std::inner_product(position.begin(), position.end(), strides.begin(), int64_t{0})));
  });
  return map;
}

std::optional<ElementMap> MapExpand(const NodeProto&, const Inputs& inputs) {
  const ConstantValue* shape = Known(inputs, 1);
  if (shape == nullptr || shape->is_float()) return std::nullopt;
  const auto dims = BroadcastDims(inputs[0].value->dims, shape->ints);
  if (!dims.has_value() || !IsSmall(*dims)) return std::nullopt;
  auto sources = BroadcastSources(inputs[0].value->dims, *dims);
  if (!sources.has_value()) return std::nullopt;
  return ElementMap{*dims, std::move(*sources)};
}

std::optional<ElementMap> MapTile(const NodeProto&, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  const ConstantValue* repeats = Known(inputs, 1);
  if (repeats == nullptr || repeats->ints.size() != data.dims.size()) return std::nullopt;
  ElementMap map;
  for (size_t i = 0; i < data.dims.size(); ++i) {
    int64_t dim = 0;
    if (repeats->ints[i] < 0 || __builtin_mul_overflow(data.dims[i], repeats->ints[i], &dim)) {
      return std::nullopt;
    }
    map.dims.push_back(dim);
  }
  if (!IsSmall(map.dims)) return std::nullopt;
  const std::vector<int64_t> strides = StridesOf(data.dims);
  ForEachPosition(map.dims, [&](const std::vector<int64_t>& position) {
    int64_t source = 0;
    for (size_t i = 0; i < position.size(); ++i) source += position[i] % data.dims[i] * strides[i];
    map.sources.push_back(static_cast<size_t>(source));
  });
  return map;
}

std::optional<ElementMap> MapGather(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  const ConstantValue* indices = Known(inputs, 1);
  const auto axis = NormalAxis(IntAttribute(node, "axis", 0), data.dims.size());
  if (indices == nullptr || indices->is_float() || !axis.has_value()) return std::nullopt;
  const auto split = data.dims.begin() + static_cast<std::ptrdiff_t>(*axis);
  const Dims outer(data.dims.begin(), split);
  const Dims inner(split + 1, data.dims.end());
  ElementMap map;
  map.dims = outer;
  map.dims.insert(map.dims.end(), indices->dims.begin(), indices->dims.end());
  map.dims.insert(map.dims.end(), inner.begin(), inner.end());
  if (!IsSmall(map.dims)) return std::nullopt;
  const int64_t size = data.dims[*axis];
  const int64_t block = *ElementCount(inner);
  for (int64_t o = 0; o < *ElementCount(outer); ++o) {
    for (const int64_t index : indices->ints) {
      const int64_t place = index < 0 ? index + size : index;
      if (place < 0 || place >= size) return std::nullopt;
      for (int64_t i = 0; i < block; ++i) {
        map.sources.push_back(static_cast<size_t>((o * size + place) * block + i));
      }
    }
  }
  return map;
}

std::optional<ElementMap> MapSlice(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue& data = *inputs[0].value;
  std::vector<int64_t> parts[4];  // starts, ends, axes, steps
  constexpr const char* kNames[4] = {"starts", "ends", "axes", "steps"};
  for (size_t i = 0; i < 4; ++i) {
    if (inputs.size() == 1) {
      parts[i] = IntsAttribute(node, kNames[i]);
    } else if (const ConstantValue* part = Known(inputs, i + 1); part != nullptr) {
      parts[i] = part->ints;
    } else if (i + 1 < inputs.size() && inputs[i + 1].dims != nullptr) {
      return std::nullopt;  // Given, but with unknown contents.
    }
  }
  const size_t count = parts[0].size();
  if (parts[2].empty()) {
    for (size_t i = 0; i < count; ++i) parts[2].push_back(static_cast<int64_t>(i));
  }
  if (parts[3].empty()) parts[3].assign(count, 1);
  if (parts[1].size() != count || parts[2].size() != count || parts[3].size() != count) {
    return std::nullopt;
  }
  std::vector<SliceRange> ranges;
  for (const int64_t dim : data.dims) ranges.push_back({0, 1, dim});
  for (size_t i = 0; i < count; ++i) {
    const auto axis = NormalAxis(parts[2][i], data.dims.size());
    if (!axis.has_value() || parts[3][i] == 0) return std::nullopt;
    ranges[*axis] = RangeOf(parts[0][i], parts[1][i], parts[3][i], data.dims[*axis]);
  }
  ElementMap map;
  for (const SliceRange& range : ranges) map.dims.push_back(range.count);
  const std::vector<int64_t> strides = StridesOf(data.dims);
  ForEachPosition(map.dims, [&](const std::vector<int64_t>& position) {
    int64_t source = 0;
    for (size_t i = 0; i < position.size(); ++i) {
      source += (ranges[i].start + position[i] * ranges[i].step) * strides[i];
    }
    map.sources.push_back(static_cast<size_t>(source));
  });
  return map;
}

std::optional<ElementMap> MapCopy(const NodeProto&, const Inputs& inputs) {
  return InOrder(inputs[0].value->dims, inputs[0].value->size());
}

Folded FoldMove(const FoldRule& rule, const NodeProto& node, const Inputs& inputs) {
  if (Known(inputs, 0) == nullptr) return std::nullopt;
  auto map = rule.map(node, inputs);
  if (!map.has_value()) return std::nullopt;
  return One(Pick(*inputs[0].value, std::move(*map)));
}

std::vector<int64_t> StridesOf(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  // Only an empty shape can overflow here, and nothing uses its strides.
  for (size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = CheckedMul(strides[i], dims[i]).value_or(0);
  }
  return strides;
}

std::optional<Dims> BroadcastDims(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x < 0 || y < 0 || (x != y && x != 1 && y != 1)) return std::nullopt;
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

std::optional<std::vector<size_t>> BroadcastSources(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return std::nullopt;
  const size_t missing = to.size() - from.size();
  const std::vector<int64_t> own = StridesOf(from);
  std::vector<int64_t> strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1 && from[i] != to[missing + i]) return std::nullopt;
    if (from[i] != 1) strides[missing + i] = own[i];
  }
  std::vector<size_t> sources;
  ForEachPosition(to, [&](const std::vector<int64_t>& position) {
    sources.push_back(static_cast<size_t>(
        std::inner_product(position.begin(), position.end(), strides.begin(), int64_t{0})));
  });
  return sources;
}

std::optional<Axes> ReadAxes(const NodeProto& node, const Inputs& inputs, size_t input,
                             size_t rank) {
  Axes axes;
  if (const onnx::AttributeProto* attribute = FindAttribute(node, "axes"); attribute != nullptr) {
    axes.are_given = true;
    axes.values.assign(attribute->ints().begin(), attribute->ints().end());
  } else if (input < inputs.size() && inputs[input].dims != nullptr) {
    const ConstantValue* value = inputs[input].value;
    if (value == nullptr || value->is_float()) return std::nullopt;
    axes.are_given = true;
    axes.values = value->ints;
  }
  for (int64_t& axis : axes.values) {
    const auto normal = NormalAxis(axis, rank);
    if (!normal.has_value()) return std::nullopt;
    axis = static_cast<int64_t>(*normal);
  }
  return axes;
}

}  // namespace ckplan::folding
