#include "cli/ckbench/gpu_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/executor/core/element_orders.h"
#include "lib/executor/cuda/traffic/element_orders.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"

namespace ckplan {
namespace {

constexpr GpuRates kRates = {1e12, 1e13, 1e14, 1e14, 1e-6};

StepGraph StepOf(const std::string& model, DimSizes dims, ActivationType type,
                 FusedOperators fused = FusedOperators::kNone) {
  PlanRequest request;
  request.fused = fused;
  request.dims = std::move(dims);
  request.activation_type = type;
  request.cost_model.clear();
  const auto source = LoadModelSource("testdata/models/" + model, request);
  REQUIRE(source.ok());
  auto step = BuildStepGraph(source->model, source->lowered);
  REQUIRE(step.ok());
  ChooseOrders(*step, cuda::OrdersOf);
  return std::move(*step);
}

const GpuModelRow* Find(const std::vector<GpuModelRow>& rows, std::string_view what,
                        bool is_backward) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const GpuModelRow& row) {
    return row.what == what && row.is_backward == is_backward;
  });
  return found == rows.end() ? nullptr : &*found;
}

TEST_CASE("gpu-model: the gradient of ReLU moves the same in PyTorch, and half in bfloat16") {
  const DimSizes dims = {{"N", 2}};
  const auto wide = ModelOfStep(StepOf("resnet18.onnx", dims, ActivationType::kOfModel), {kRates});
  const auto half = ModelOfStep(StepOf("resnet18.onnx", dims, ActivationType::kBFloat16), {kRates});
  const GpuModelRow* relu = Find(wide, "Relu", true);
  REQUIRE(relu != nullptr);
  CHECK(relu->ours.kernels == 17);
  CHECK(relu->ours.bytes == relu->torch.bytes);
  CHECK(relu->ours.bytes == relu->least_bytes);
  CHECK(Find(half, "Relu", true)->ours.bytes == relu->ours.bytes / 2);
}

TEST_CASE("gpu-model: joined operators have a row of their own, and move less than single ones") {
  const StepGraph step = StepOf("resnet18.onnx", {{"N", 2}}, ActivationType::kOfModel);
  const auto rows = ModelOfStep(step, {kRates});
  KernelSum joined;
  for (const char* const what : {"BatchNormalization+Relu", "BatchNormalization+Add+Relu"}) {
    REQUIRE(Find(rows, what, false) != nullptr);
    joined += Find(rows, what, false)->ours;
  }
  KernelSum single;
  for (const char* const type : {"BatchNormalization", "Add", "Relu"}) {
    joined += Find(rows, type, false)->ours;
    single += Find(rows, type, false)->torch;
  }
  CHECK(Find(rows, "Relu", false)->ours.kernels == 0);
  CHECK(joined.kernels < single.kernels);
  CHECK(joined.bytes < single.bytes * 2 / 3);
}

TEST_CASE("gpu-model: in bfloat16 the images alone are moved to channels last") {
  const StepGraph step = StepOf("resnet18.onnx", {{"N", 2}}, ActivationType::kBFloat16);
  GpuModelOptions options{kRates};
  options.has_kernels = true;
  const auto rows = ModelOfStep(step, options);
  const GpuModelRow* const forward = Find(rows, "Conv: layout", false);
  REQUIRE(forward != nullptr);
  constexpr int64_t kImages = 2 * 3 * 224 * 224 * 2;
  CHECK(forward->ours.bytes == 2 * kImages);
  CHECK(Find(rows, "Conv: layout", true)->ours.bytes == 2 * kImages);  // For the weights' gradient.
}

TEST_CASE("gpu-model: PyTorch stores no scores in fused attention, and adds biases in products") {
  const StepGraph step = StepOf("small_bert.onnx", {{"N", 2}}, ActivationType::kOfModel);
  const auto fused = ModelOfStep(step, {kRates});
  const auto plain = ModelOfStep(step, {kRates, TorchAttention::kPlain});
  for (const char* const type : {"Softmax", "IsNaN", "Where", "Mul", "Transpose"}) {
    CAPTURE(type);
    REQUIRE(Find(fused, type, false) != nullptr);
    CHECK(Find(fused, type, false)->torch.kernels == 0);
  }
  const auto products = [](const std::vector<GpuModelRow>& rows) {
    return Find(rows, "MatMul", false)->torch;
  };
  CHECK(products(fused).bytes < products(plain).bytes);
  // Two layers: the scores, mask and probabilities are kernels of their own.
  CHECK(products(plain).kernels - products(fused).kernels == 2 * 6);
  for (const char* const joined : {"Add+Softmax", "IsNaN+Where"}) {
    CAPTURE(joined);
    REQUIRE(Find(fused, joined, false) != nullptr);
    CHECK(Find(fused, joined, false)->ours.kernels == 2);
  }
  // Adds that are no biases: two of embeddings, and two residuals for each of the two layers.
  CHECK(Find(fused, "Add", false)->torch.kernels == 2 + 2 * 2);
}

TEST_CASE(
    "gpu-model: attention that is read as one operator has PyTorch's kernels beside its own") {
  const DimSizes dims = {{"N", 2}};
  const auto apart =
      ModelOfStep(StepOf("small_bert.onnx", dims, ActivationType::kOfModel), {kRates});
  const StepGraph step =
      StepOf("small_bert.onnx", dims, ActivationType::kOfModel, FusedOperators::kAttention);
  const auto fused = ModelOfStep(step, {kRates});
  KernelSum torch_apart, torch_fused;
  for (const GpuModelRow& row : apart) torch_apart += row.torch;
  for (const GpuModelRow& row : fused) torch_fused += row.torch;
  CHECK(torch_fused.kernels == torch_apart.kernels);
  CHECK(torch_fused.bytes == torch_apart.bytes);
  const GpuModelRow* forward = Find(fused, "FusedAttention", false);
  REQUIRE(forward != nullptr);
  CHECK(forward->ours.kernels == 2);  // One for each layer.
  // Dot products, the gradient of queries, those of keys and values, and the copy of the latter.
  CHECK(Find(fused, "FusedAttention", true)->ours.kernels == 2 * 4);
  // What the kernels of both move beside is the mask, and the logarithms of sums.
  int64_t log_sums = 0, mask = 0;
  for (const StepNode& node : step.nodes) {
    if (node.spec.type != "FusedAttention") continue;
    log_sums += node.spec.statistic_bytes;
    mask += node.spec.input(3).bytes();
  }
  CHECK(forward->ours.bytes == forward->torch.bytes + log_sums + mask);
}

TEST_CASE("gpu-model: rows of kernels add up to those of operators") {
  const StepGraph step = StepOf("small_gpt2.onnx", {{"N", 2}}, ActivationType::kBFloat16);
  KernelSum operators, kernels;
  for (const GpuModelRow& row : ModelOfStep(step, {kRates})) operators += row.ours;
  GpuModelOptions options{kRates};
  options.has_kernels = true;
  for (const GpuModelRow& row : ModelOfStep(step, options)) kernels += row.ours;
  CHECK(operators.kernels == kernels.kernels);
  CHECK(operators.bytes == kernels.bytes);
}

TEST_CASE("gpu-model: a kernel takes as long as its slowest part, after its start") {
  const auto rows = ModelOfStep(StepOf("tiny_mlp.onnx", {{"N", 8}}, ActivationType::kOfModel),
                                {GpuRates{1e12, 1e13, 1e14, 1e14, 1e-3}});
  for (const GpuModelRow& row : rows) {
    CAPTURE(row.what);
    CHECK(row.ours.seconds >= 1e-3 * static_cast<double>(row.ours.kernels));
    CHECK(row.ours.seconds < 1.01e-3 * static_cast<double>(row.ours.kernels));
  }
}

}  // namespace
}  // namespace ckplan
