#include "lib/executor/cuda/traffic/kernel_traffic.h"

#include <doctest/doctest.h>

namespace ckplan::cuda {
namespace {

Operand Floats(std::vector<int64_t> dims, ElementType type = ElementType::kFloat32) {
  Operand operand;
  operand.is_present = true;
  operand.type = type;
  operand.dims = std::move(dims);
  operand.has_gradient = true;
  operand.is_read_by_backward = true;
  return operand;
}

OpSpec SpecOf(std::string type, std::vector<Operand> inputs, Operand output) {
  OpSpec spec;
  spec.name = "node";
  spec.type = std::move(type);
  spec.opset = 18;
  spec.inputs = std::move(inputs);
  spec.outputs = {std::move(output)};
  return spec;
}

int64_t Moved(const Kernels& kernels) {
  int64_t bytes = 0;
  for (const KernelTraffic& kernel : kernels) bytes += kernel.moved();
  return bytes;
}

TEST_CASE("traffic: a bias is added to each row, and its gradient is a sum") {
  const OpSpec add = SpecOf("Add", {Floats({16, 8}), Floats({8})}, Floats({16, 8}));
  CHECK(Moved(ForwardKernels(add)) == (2 * 16 * 8 + 8) * 4);
  CHECK(Moved(BackwardKernels(add, 1)) == (16 * 8 + 8) * 4);
  CHECK(LeastForward(add) == Moved(ForwardKernels(add)));
}

TEST_CASE("traffic: a product of bfloat16 rounds its weights first") {
  const OpSpec product = SpecOf("MatMul", {Floats({16, 8}, ElementType::kBFloat16), Floats({8, 4})},
                                Floats({16, 4}, ElementType::kBFloat16));
  const Kernels kernels = ForwardKernels(product);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].moved() == 8 * 4 * (4 + 2));
  CHECK(kernels[1].moved() == (16 * 8 + 8 * 4 + 16 * 4) * 2);
  CHECK(kernels[1].flops == 2 * 16 * 8 * 4);
  CHECK(kernels[1].engine == Engine::kMatrixUnits);
}

// Weights are converted once in each direction that reads them, and their gradient back.
TEST_CASE(
    "traffic: tensors of a convolution of bfloat16 are moved unless their channels are last") {
  const std::vector<int64_t> dims = {2, 8, 6, 6};
  OpSpec conv = SpecOf("Conv", {Floats(dims, ElementType::kBFloat16), Floats({8, 8, 1, 1})},
                       Floats(dims, ElementType::kBFloat16));
  constexpr int64_t kTensor = 2 * 8 * 6 * 6 * 2;
  const auto moves = [&conv] {
    int64_t bytes = 0;
    for (const Kernels& kernels :
         {ForwardKernels(conv), BackwardKernels(conv, 0), BackwardKernels(conv, 1)}) {
      for (const KernelTraffic& kernel : kernels) {
        if (kernel.kernel == "layout") bytes += kernel.moved();
      }
    }
    return bytes;
  };
  CHECK(moves() == 3 * 2 * 2 * kTensor);
  conv.outputs[0].is_channels_last = true;
  CHECK(moves() == 3 * 2 * kTensor);
  conv.inputs[0].is_channels_last = true;
  CHECK(moves() == 0);
  // A tensor of one position needs no move, whatever its mark.
  conv.inputs[0] = conv.outputs[0] = Floats({2, 8, 1, 1}, ElementType::kBFloat16);
  CHECK(moves() == 0);
}

TEST_CASE("traffic: the first gradient of a batch normalisation computes the sums of all") {
  const OpSpec norm =
      SpecOf("BatchNormalization",
             {Floats({2, 4, 8, 8}), Floats({4}), Floats({4}), Floats({4}), Floats({4})},
             Floats({2, 4, 8, 8}));
  constexpr int64_t kTensor = 2 * 4 * 8 * 8 * 4;
  CHECK(Moved(BackwardKernels(norm, 0)) == 5 * kTensor);
  CHECK(Moved(BackwardKernels(norm, 1)) == 4 * 4);
}

TEST_CASE("traffic: a row that a warp holds is accessed once, a longer one three times") {
  constexpr int64_t kHeld = 1024, kLonger = 1028;
  for (const int64_t length : {kHeld, kLonger}) {
    const OpSpec softmax = SpecOf("Softmax", {Floats({6, length})}, Floats({6, length}));
    const int64_t tensor = 6 * length * 4;
    const Kernels kernels = ForwardKernels(softmax);
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].moved() == 2 * tensor);
    CHECK(kernels[0].accessed == (length == kHeld ? 2 : 4) * tensor);
  }
}

TEST_CASE("traffic: scales and biases of a layer normalisation are summed together") {
  const OpSpec norm = SpecOf("LayerNormalization", {Floats({6, 768}), Floats({768}), Floats({768})},
                             Floats({6, 768}));
  constexpr int64_t kTensor = 6 * 768 * 4;
  CHECK(Moved(BackwardKernels(norm, 0)) == 3 * kTensor);
  CHECK(Moved(BackwardKernels(norm, 1)) == 2 * kTensor + 768 * 4);
  CHECK(Moved(BackwardKernels(norm, 2)) == 2 * 768 * 4);
}

TEST_CASE("traffic: an unknown operator is counted once for each operand") {
  const OpSpec other = SpecOf("Einsum", {Floats({3}), Floats({3})}, Floats({}));
  CHECK(!IsModelled("Einsum"));
  CHECK(IsModelled("Relu"));
  CHECK(Moved(ForwardKernels(other)) == (3 + 3 + 1) * 4);
  CHECK(LeastForward(other) == (3 + 3 + 1) * 4);
}

}  // namespace
}  // namespace ckplan::cuda
