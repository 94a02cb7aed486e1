// Products of matrices and convolutions: calls of the libraries, and the conversions around them.
#include <algorithm>

#include "lib/executor/cuda/traffic/kernel_list.h"
#include "lib/problem/ops/attention.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/matmul.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

namespace {

constexpr int64_t kHalf = 2;  // Bytes of a bfloat16.

// A float32 factor of a product of bfloat16 is a parameter, and is converted first.
void AddConversion(const OpSpec& spec, const Operand& factor, Kernels& kernels) {
  if (!MultipliesHalves(spec) || factor.type != ElementType::kFloat32) return;
  kernels.push_back(Pass("conversion", BytesOf(factor), factor.elements() * kHalf));
}
int64_t FactorBytes(const OpSpec& spec, const Operand& factor) {
  return factor.elements() * (MultipliesHalves(spec) ? kHalf : SizeOf(factor.type));
}
void AddReturn(const OpSpec& spec, const Operand& result, Kernels& kernels) {
  if (!MultipliesHalves(spec) || result.type != ElementType::kFloat32) return;
  kernels.push_back(Pass("conversion", result.elements() * kHalf, BytesOf(result)));
}

// Tensor cores convolve bfloat16 with the channels last. A tensor in the order of the model is
// moved into that order or back, by the library or by us.
void AddLayout(const OpSpec& spec, const Operand& tensor, Kernels& kernels) {
  if (!MultipliesHalves(spec) || tensor.is_channels_last || HasOneOrder(tensor.dims)) return;
  kernels.push_back(Pass("layout", BytesOf(tensor), BytesOf(tensor)));
}

int64_t ProductFlops(const OpSpec& spec) {
  const auto shape = ReadMatMulShape(spec);
  if (!shape.ok()) return 0;
  return 2 * ckplan::Product(shape->leading) * shape->m * shape->n * shape->k;
}

int64_t ConvolutionFlops(const OpSpec& spec) {
  const Operand& map = spec.type == "Conv" ? spec.output(0) : spec.input(0);
  const Operand& image = spec.type == "Conv" ? spec.input(0) : spec.output(0);
  const Operand& weights = spec.input(1);
  const int64_t channels =
      std::max<int64_t>(1, spec.type == "Conv" ? weights.dims[0] : image.dims[1]);
  return 2 * map.elements() * (weights.elements() / channels);
}

// Gemm's third input is written to the result first, which the product then reads.
Kernels ForwardProduct(const OpSpec& spec) {
  Kernels kernels;
  const int64_t result = BytesOf(spec.output(0));
  const bool adds = spec.input(2).is_present;
  if (adds) kernels.push_back(Pass("bias", BytesOf(spec.input(2)), result));
  for (size_t i = 0; i < 2; ++i) AddConversion(spec, spec.input(i), kernels);
  const int64_t factors = FactorBytes(spec, spec.input(0)) + FactorBytes(spec, spec.input(1));
  kernels.push_back(Product("product", factors + (adds ? result : 0), result, ProductFlops(spec)));
  return kernels;
}
Kernels BackwardProduct(const OpSpec& spec, size_t position) {
  const int64_t dy = BytesOf(spec.output(0));
  if (position == 2) return {Pass("sum of gradients", dy, BytesOf(spec.input(2)))};
  Kernels kernels;
  const Operand& other = spec.input(1 - position);
  AddConversion(spec, other, kernels);
  kernels.push_back(Product("product", dy + FactorBytes(spec, other),
                            FactorBytes(spec, spec.input(position)), ProductFlops(spec)));
  AddReturn(spec, spec.input(position), kernels);
  return kernels;
}

Kernels ForwardConvolution(const OpSpec& spec) {
  Kernels kernels;
  const int64_t y = BytesOf(spec.output(0));
  AddConversion(spec, spec.input(1), kernels);
  AddLayout(spec, spec.input(0), kernels);
  kernels.push_back(Product("convolution",
                            BytesOf(spec.input(0)) + FactorBytes(spec, spec.input(1)), y,
                            ConvolutionFlops(spec)));
  AddLayout(spec, spec.output(0), kernels);
  if (spec.input(2).is_present) kernels.push_back(Pass("bias", y, y));
  return kernels;
}
Kernels BackwardConvolution(const OpSpec& spec, size_t position) {
  const int64_t dy = BytesOf(spec.output(0));
  if (position == 2) return {Pass("sum of gradients", dy, BytesOf(spec.input(2)))};
  Kernels kernels;
  const Operand& other = spec.input(1 - position);
  if (position == 0) AddConversion(spec, other, kernels);
  AddLayout(spec, spec.output(0), kernels);
  if (position == 1) AddLayout(spec, spec.input(0), kernels);
  kernels.push_back(Product("convolution", dy + FactorBytes(spec, other),
                            FactorBytes(spec, spec.input(position)), ConvolutionFlops(spec)));
  if (position == 0) AddLayout(spec, spec.input(0), kernels);
  if (position == 1) AddReturn(spec, spec.input(1), kernels);
  return kernels;
}

// ---- Fused attention ----

constexpr int64_t kDotBytes = 4;  // A row of the output times its gradient, in float32.

// What the kernels of both passes read beside the output and its gradient.
int64_t AttentionInputs(const OpSpec& spec) {
  int64_t bytes = 0;
  for (const Operand& input : spec.inputs) bytes += BytesOf(input);
  return bytes;
}
// The operations of one of the two products of the forward pass, on average.
int64_t AttentionFlops(const OpSpec& spec) {
  const auto shape = ReadFusedAttentionShape(spec);
  if (!shape.ok()) return 0;
  return shape->rows() * shape->keys * (shape->size + shape->value_size);
}
int64_t AttentionDots(const OpSpec& spec) {
  const auto shape = ReadFusedAttentionShape(spec);
  return shape.ok() ? shape->rows() * kDotBytes : 0;
}

Kernels ForwardAttention(const OpSpec& spec) {
  return {Product("attention", AttentionInputs(spec),
                  BytesOf(spec.output(0)) + spec.statistic_bytes, 2 * AttentionFlops(spec))};
}

// Scores and their gradients are computed again for queries, for keys and values together, and for
// a mask or bias. The gradient of values waits in the workspace for its turn.
Kernels BackwardAttention(const OpSpec& spec, size_t position) {
  Kernels kernels;
  const bool is_first =
      std::none_of(spec.inputs.begin(), spec.inputs.begin() + static_cast<int64_t>(position),
                   [](const Operand& input) { return input.has_gradient; });
  const int64_t y = BytesOf(spec.output(0));
  if (is_first) kernels.push_back(Pass("dots", 2 * y, AttentionDots(spec)));
  const int64_t v = BytesOf(spec.input(2));
  if (position == 2 && spec.input(1).has_gradient) {
    kernels.push_back(Pass("copy", v, v));
    return kernels;
  }
  const int64_t read = AttentionInputs(spec) + y + spec.statistic_bytes + AttentionDots(spec);
  const bool keeps = position == 1 && spec.input(2).has_gradient;
  const int64_t products = position == 0 ? 3 : (position > 2 ? 2 : (keeps ? 4 : 3));
  kernels.push_back(Product(position == 0 ? "queries" : (position > 2 ? "term" : "keys"), read,
                            BytesOf(spec.input(position)) + (keeps ? v : 0),
                            products * AttentionFlops(spec)));
  return kernels;
}

constexpr TrafficRow kDenseRows[] = {
    {"Conv", ForwardConvolution, BackwardConvolution},
    {"ConvTranspose", ForwardConvolution, BackwardConvolution},
    {"FusedAttention", ForwardAttention, BackwardAttention},
    {"Gemm", ForwardProduct, BackwardProduct},
    {"MatMul", ForwardProduct, BackwardProduct},
};

}  // namespace

const TrafficRow* FindDenseRow(std::string_view type) {
  const auto* const found = std::find_if(std::begin(kDenseRows), std::end(kDenseRows),
                                         [&](const TrafficRow& row) { return row.type == type; });
  return found == std::end(kDenseRows) ? nullptr : found;
}

}  // namespace ckplan::cuda
