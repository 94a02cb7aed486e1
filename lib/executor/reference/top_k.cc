// TopK.
#include <algorithm>

#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

// Returns values and indices of the k largest or smallest elements, in order; among equal elements
// the first ones win.
void TopK(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += x.rank();
  const double sign = spec.Int("largest", 1) != 0 ? -1 : 1;
  std::vector<int64_t> others = x.dims;
  others[static_cast<size_t>(axis)] = 1;
  ForEach(others, [&](const Index& index, int64_t) {
    Index at = index;
    std::vector<std::pair<double, int64_t>> line;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      line.emplace_back(sign * x[Offset(x, at)], k);
    }
    std::sort(line.begin(), line.end());
    for (int64_t k = 0; k < outputs[0].dim(axis); ++k) {
      const auto& [value, from] = line[static_cast<size_t>(k)];
      at[static_cast<size_t>(axis)] = k;
      outputs[0][Offset(outputs[0], at)] = sign * value;
      if (outputs[1].is_present) {
        outputs[1][Offset(outputs[1], at)] = static_cast<double>(from);
      }
    }
  });
}

constexpr FunctionRow kTopKReferences[] = {
    {"TopK", TopK},
};

constexpr CaseRow kTopKCases[] = {
    {"TopK", "f2x7 i1=[3] -> f2x3 i2x3"},
    {"TopK", "f2x7 i1=[3] -> f2x3 _"},
    {"TopK", "f2x7x3 i1=[7] -> f2x7x3 i2x7x3", "axis=1 largest=0"},
    {"TopK", "f2x7x3 i1=[2] -> f2x2x3 _", "axis=-2"},
    {"TopK", "f9~@[3,1,3,3,2,1,0,3,1] i1=[5] -> f5 i5"},
    {"TopK", "f300x90 i1=[40] -> f300x40 i300x40"},
    {"TopK", "f2x1100 i1=[3] -> f2x3 i2x3"},
    {"TopK", "f2x1100x2 i1=[2] -> f2x2x2 _", "axis=1 largest=0"},
    {"TopK", "i2x1100(0..9) i1=[9] -> i2x9 i2x9"},
    {"TopK", "i2x7(-9..9) i1=[3] -> i2x3 i2x3", "sorted=0"},
};

}  // namespace

std::span<const FunctionRow> TopKReferences() { return kTopKReferences; }
std::span<const CaseRow> TopKCases() { return kTopKCases; }

}  // namespace ckplan::reference
