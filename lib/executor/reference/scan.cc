// Cumulative sums, and the indices of extreme values.
#include <cmath>

#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

void CumSum(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  auto axis = static_cast<int64_t>(inputs[1][0]);
  if (axis < 0) axis += x.rank();
  const bool is_exclusive = spec.Int("exclusive", 0) != 0;
  const bool is_reverse = spec.Int("reverse", 0) != 0;
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    Index other = index;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      const int64_t own = index[static_cast<size_t>(axis)];
      const bool is_before = is_reverse ? k > own : k < own;
      if (!is_before && (is_exclusive || k != own)) continue;
      other[static_cast<size_t>(axis)] = k;
      outputs[0][i] += x[Offset(x, other)];
    }
  });
}

void ArgExtreme(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  int64_t axis = spec.Int("axis", 0);
  if (axis < 0) axis += x.rank();
  const double sign = spec.type == "ArgMax" ? 1 : -1;
  std::vector<int64_t> others = x.dims;
  others[static_cast<size_t>(axis)] = 1;
  ForEach(others, [&](const Index& index, int64_t i) {
    Index at = index;
    double best = -HUGE_VAL;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      const double value = sign * x[Offset(x, at)];
      if (value > best || (value == best && spec.Int("select_last_index", 0) != 0)) {
        best = value;
        outputs[0][i] = static_cast<double>(k);
      }
    }
  });
}

void Hardmax(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  Tensor x = inputs[0];
  int64_t axis = spec.Int("axis", spec.opset < 13 ? 1 : -1);
  if (axis < 0) axis += x.rank();
  if (spec.opset < 13) {  // All elements from the axis on are one line.
    int64_t rows = 1;
    for (int64_t k = 0; k < axis; ++k) rows *= x.dim(k);
    x.dims = {rows, x.size() / rows};
    axis = 1;
  }
  std::vector<int64_t> lines = x.dims;
  lines[static_cast<size_t>(axis)] = 1;
  ForEach(lines, [&](const Index& index, int64_t) {
    Index at = index;
    int64_t first_maximum = Offset(x, at);
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      const int64_t offset = Offset(x, at);
      if (x[offset] > x[first_maximum]) first_maximum = offset;
      outputs[0][offset] = 0;
    }
    outputs[0][first_maximum] = 1;
  });
}

constexpr FunctionRow kScanReferences[] = {
    {"Hardmax", Hardmax},
    {"CumSum", CumSum},
    {"ArgMax", ArgExtreme},
    {"ArgMin", ArgExtreme},
};

constexpr CaseRow kScanCases[] = {
    {"CumSum", "f2x5x3 is=[1] -> f2x5x3"},
    {"CumSum", "f2x5x3 is=[-1] -> f2x5x3", "exclusive=1"},
    {"CumSum", "f2x5x3 is=[0] -> f2x5x3", "reverse=1"},
    {"CumSum", "f2x5x3 is=[1] -> f2x5x3", "reverse=1 exclusive=1"},
    {"CumSum", "f3x150 is=[1] -> f3x150", "", 3e-5},
    {"CumSum", "f2x131x3 is=[1] -> f2x131x3", "reverse=1 exclusive=1", 3e-5},
    {"CumSum", "i2x5(-9..9) is=[1] -> i2x5"},
    {"CumSum", "i2x80(-9..9) is=[1] -> i2x80"},
    {"CumSum", "n2x5(-9..9) i1=[1] -> n2x5"},
    {"Hardmax", "f2x5x3 -> f2x5x3"},
    {"Hardmax", "f2x5x3 -> f2x5x3", "axis=1"},
    {"Hardmax@11", "f2x5x3 -> f2x5x3"},
    {"Hardmax", "f5@[1,3,2,3,0] -> f5"},
    {"ArgMax", "f2x5x3 -> i1x5x3"},
    {"ArgMax", "f2x5x3 -> i2x3", "axis=1 keepdims=0"},
    {"ArgMax", "i6@[1,3,2,3,0,3] -> i1", "axis=0"},
    {"ArgMax", "i6@[1,3,2,3,0,3] -> i1", "axis=0 select_last_index=1"},
    {"ArgMin", "f2x5x3 -> i2x5x1", "axis=-1"},
    {"ArgMin", "n3x2 -> i3", "axis=1 keepdims=0 select_last_index=1"},
};

}  // namespace

std::span<const FunctionRow> ScanReferences() { return kScanReferences; }
std::span<const CaseRow> ScanCases() { return kScanCases; }

}  // namespace ckplan::reference
