// Col2Im: every element of every block is added at its place on the image.
#include "lib/executor/reference/families.h"
#include "lib/executor/reference/sliding.h"

namespace ckplan::reference {

namespace {

std::vector<int64_t> Integers(const Tensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

void Col2Im(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> image = Integers(inputs[1]);
  const std::vector<int64_t> block = Integers(inputs[2]);
  const size_t rank = image.size();
  const std::vector<int64_t> strides = IntsOr(spec, "strides", rank, 1);
  const std::vector<int64_t> dilations = IntsOr(spec, "dilations", rank, 1);
  const std::vector<int64_t> pads = IntsOr(spec, "pads", 2 * rank, 0);
  // The input's axes are sample, channel, the axes of the block, and the axes of the blocks'
  // positions.
  std::vector<int64_t> axes = {outputs[0].dim(0), outputs[0].dim(1)};
  axes.insert(axes.end(), block.begin(), block.end());
  for (size_t k = 0; k < rank; ++k) {
    const int64_t extent = (block[k] - 1) * dilations[k] + 1;
    axes.push_back((image[k] + pads[k] + pads[k + rank] - extent) / strides[k] + 1);
  }
  ForEach(axes, [&](const Index& index, int64_t i) {
    Index to = {index[0], index[1]};
    bool is_inside = true;
    for (size_t k = 0; k < rank; ++k) {
      to.push_back(index[2 + rank + k] * strides[k] - pads[k] + index[2 + k] * dilations[k]);
      is_inside = is_inside && to.back() >= 0 && to.back() < image[k];
    }
    if (is_inside) outputs[0][Offset(outputs[0], to)] += inputs[0][i];
  });
}

constexpr FunctionRow kCol2ImReferences[] = {{"Col2Im", Col2Im}};

constexpr CaseRow kCol2ImCases[] = {
    {"Col2Im", "f1x5x5 i2=[5,5] i2=[1,5] -> f1x1x5x5"},
    {"Col2Im", "f1x9x4 i2=[5,5] i2=[3,3] -> f1x1x5x5", "strides=[2,2]"},
    {"Col2Im", "f1x5x15 i2=[5,5] i2=[1,5] -> f1x1x5x5", "pads=[0,1,0,1]"},
    {"Col2Im", "f1x4x5 i2=[6,6] i2=[2,2] -> f1x1x6x6", "dilations=[1,5]"},
    {"Col2Im", "f2x12x28 i2=[7,6] i2=[3,2] -> f2x2x7x6",
     "strides=[2,1] dilations=[1,2] pads=[1,0,2,3]"},
    // Images with one axis and with three axes.
    {"Col2Im", "f2x6x7 i1=[9] i1=[3] -> f2x2x9"},
    {"Col2Im", "f1x10x12 i3=[3,4,5] i3=[1,1,5] -> f1x2x3x4x5"},
    {"Col2Im", "f2x24x12 i3=[4,5,3] i3=[2,3,2] -> f2x2x4x5x3",
     "strides=[2,1,1] dilations=[1,2,2] pads=[0,1,1,1,0,1]"},
    // Elements of the image that no block covers, and blocks that lie entirely in the padding.
    {"Col2Im", "f2x4x3 i1=[10] i1=[2] -> f2x2x10", "strides=[4]"},
    {"Col2Im", "f1x2x11 i1=[2] i1=[2] -> f1x1x2", "pads=[5,5]"},
    {"Col2Im", "f1x2x3 i1=[1] i1=[2] -> f1x1x1", "pads=[4,4] strides=[3]"},
    {"Col2Im", "f2x12x3360 i2=[57,61] i2=[2,2] -> f2x3x57x61"},
    {"Col2Im", "f40x8x4 i2=[3,3] i2=[2,2] -> f40x2x3x3"},
};

}  // namespace

std::span<const FunctionRow> Col2ImReferences() { return kCol2ImReferences; }
std::span<const CaseRow> Col2ImCases() { return kCol2ImCases; }

}  // namespace ckplan::reference
