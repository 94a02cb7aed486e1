#include "cli/ckbench/torch_kernels.h"

#include <algorithm>
#include <string_view>

#include "cli/ckbench/torch_attention.h"
#include "lib/executor/cuda/traffic/kernel_list.h"

namespace ckplan {
namespace {

using cuda::BytesOf;
using cuda::Kernels;
using cuda::KernelTraffic;
using cuda::Pass;

int64_t OutputBytes(const OpSpec& spec) { return BytesOf(spec.output(0)); }
int64_t InputBytes(const OpSpec& spec) { return BytesOf(spec.input(0)); }

// The weights of a model in bfloat16 are bfloat16 as well, and need no conversion; its tensors are
// stored with the channels last.
bool IsConversion(const KernelTraffic& kernel) {
  return kernel.kernel == "conversion" || kernel.kernel == "layout";
}
Kernels WithoutConversions(Kernels kernels) {
  std::erase_if(kernels, IsConversion);
  return kernels;
}

// Both factors of a product and its bias: the bias is added by the product's epilogue.
Kernels ForwardProduct(const OpSpec& spec) {
  Kernels kernels = WithoutConversions(cuda::ForwardKernels(spec));
  if (!spec.input(2).is_present) return kernels;
  std::erase_if(kernels, [](const KernelTraffic& kernel) { return kernel.kernel == "bias"; });
  kernels.front().read -= OutputBytes(spec);
  return kernels;
}

// batch_norm: moments and normalisation each read x; backward reads x and dy in both of its halves.
Kernels ForwardBatchNorm(const OpSpec& spec) {
  return {Pass("batch_norm statistics", InputBytes(spec), 0),
          Pass("batch_norm transform", InputBytes(spec), OutputBytes(spec))};
}
Kernels BackwardBatchNorm(const OpSpec& spec) {
  const int64_t read = InputBytes(spec) + OutputBytes(spec);
  return {Pass("batch_norm_backward reduce", read, 0),
          Pass("batch_norm_backward elementwise", read, InputBytes(spec))};
}

Kernels ForwardRows(const OpSpec& spec) {
  return {Pass("rows", InputBytes(spec), OutputBytes(spec))};
}
// One kernel for the gradient of x, and one for those of scale and bias together.
Kernels BackwardLayerNorm(const OpSpec& spec) {
  const int64_t read = InputBytes(spec) + OutputBytes(spec);
  return {Pass("layer_norm_grad_input", read, InputBytes(spec)),
          Pass("GammaBetaBackward", read, 0)};
}
Kernels BackwardSoftmax(const OpSpec& spec) {
  return {Pass("softmax_backward", 2 * OutputBytes(spec), InputBytes(spec))};
}

// The mask is kept, a byte for each element.
Kernels ForwardDropout(const OpSpec& spec) {
  return {Pass("fused_dropout", InputBytes(spec), OutputBytes(spec) + spec.output(0).elements())};
}
Kernels BackwardDropout(const OpSpec& spec) {
  return {Pass("masked_scale", OutputBytes(spec) + spec.output(0).elements(), InputBytes(spec))};
}

// The index of each maximum is an int64.
constexpr int64_t kIndex = 8;
Kernels ForwardMaxPool(const OpSpec& spec) {
  return {Pass("max_pool_forward", InputBytes(spec),
               OutputBytes(spec) + kIndex * spec.output(0).elements())};
}
Kernels BackwardMaxPool(const OpSpec& spec) {
  return {Pass("max_pool_backward", OutputBytes(spec) + kIndex * spec.output(0).elements(),
               InputBytes(spec))};
}

// grad * (exponent * x ^ (exponent - 1)), an operator each.
Kernels BackwardPow(const OpSpec& spec) {
  const int64_t x = InputBytes(spec);
  return {Pass("pow", x, x), Pass("mul", x, x), Pass("mul", 2 * x, x)};
}

Kernels ForwardView(const OpSpec&) { return {}; }
Kernels BackwardSplit(const OpSpec& spec) {
  return {Pass("cat", InputBytes(spec), InputBytes(spec))};
}

struct TorchRow {
  std::string_view type;
  Kernels (*forward)(const OpSpec& spec);   // Null: the same as ours.
  Kernels (*backward)(const OpSpec& spec);  // For all gradients; null: the same as ours.
};

constexpr TorchRow kTorchRows[] = {
    {"BatchNormalization", ForwardBatchNorm, BackwardBatchNorm},
    {"Dropout", ForwardDropout, BackwardDropout},
    {"Gemm", ForwardProduct, nullptr},
    {"LayerNormalization", ForwardRows, BackwardLayerNorm},
    {"MaxPool", ForwardMaxPool, BackwardMaxPool},
    {"Pow", nullptr, BackwardPow},
    {"Softmax", ForwardRows, BackwardSoftmax},
    {"Split", ForwardView, BackwardSplit},
    {"Transpose", ForwardView, ForwardView},
};

const TorchRow* FindTorchRow(std::string_view type) {
  const auto* const found = std::find_if(std::begin(kTorchRows), std::end(kTorchRows),
                                         [&](const TorchRow& row) { return row.type == type; });
  return found == std::end(kTorchRows) ? nullptr : found;
}

Kernels BackwardAsOurs(const StepNode& node) {
  Kernels kernels;
  for (size_t i = 0; i < node.spec.inputs.size(); ++i) {
    if (!node.spec.inputs[i].has_gradient) continue;
    // Gradients that are passed through are not computed: the graph shares their memory.
    const bool is_passed = node.spec.type == "Add" && node.inputs[i].constant.is_none() &&
                           node.spec.inputs[i].elements() == node.spec.output(0).elements();
    if (is_passed) continue;
    for (const KernelTraffic& kernel : cuda::BackwardKernels(node.spec, i)) {
      kernels.push_back(kernel);
    }
  }
  return WithoutConversions(std::move(kernels));
}

TorchNode KernelsOf(const StepNode& node) {
  const TorchRow* row = FindTorchRow(node.spec.type);
  TorchNode torch;
  torch.forward = row != nullptr && row->forward != nullptr
                      ? row->forward(node.spec)
                      : WithoutConversions(cuda::ForwardKernels(node.spec));
  const bool has_gradient = std::any_of(node.spec.inputs.begin(), node.spec.inputs.end(),
                                        [](const Operand& input) { return input.has_gradient; });
  if (!has_gradient) return torch;
  torch.backward =
      row != nullptr && row->backward != nullptr ? row->backward(node.spec) : BackwardAsOurs(node);
  return torch;
}

// An Add of a parameter with one axis to the result of a product that nothing else reads.
bool IsBiasOf(const StepNode& node, const StepLinks& links) {
  if (node.spec.type != "Add") return false;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (node.inputs[1 - i].constant.is_none() || node.spec.inputs[1 - i].dims.size() != 1) continue;
    const NodeId product = links.ProducerOf(node.inputs[i].tensor);
    if (!product.is_none() && links.TypeOf(product) == "MatMul") return true;
  }
  return false;
}

}  // namespace

IdVector<NodeId, TorchNode> TorchKernels(const StepGraph& step, TorchAttention attention) {
  const StepLinks links(step);
  IdVector<NodeId, TorchNode> torch;
  for (const StepNode& node : step.nodes) {
    TorchNode kernels = node.spec.type == "FusedAttention"
                            ? TorchAttentionKernels(node.spec, attention)
                            : KernelsOf(node);
    if (IsBiasOf(node, links)) kernels.forward.clear();
    torch.push_back(std::move(kernels));
  }
  for (const NodeId id : step.nodes.ids()) {
    if (step.nodes[id].spec.type != "Softmax") continue;
    if (const auto found = FindAttention(step, links, id)) {
      ReplaceAttention(step, *found, attention, torch);
    }
  }
  return torch;
}

}  // namespace ckplan
