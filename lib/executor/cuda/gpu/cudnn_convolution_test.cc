// Checks the calls of cuDNN with a replacement that ends the program if its rules are broken
// (emulated/emulated_cudnn.cc).
#include "lib/executor/cuda/gpu/cudnn_convolution.h"

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/executor/cuda/gpu/cuda_libraries.h"
#include "lib/executor/cuda/gpu/emulated_gpu.h"
#include "lib/executor/cuda/testing/emulated/emulated_cudnn.h"
#include "lib/executor/cuda/testing/emulated/emulated_operations.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {
namespace {

// An emulated GPU whose cuDNN has the given engines.
class Machine {
 public:
  explicit Machine(std::vector<EmulatedEngine> engines, const DeviceOptions& options = {}) {
    StartEmulatedRuntime(EmulatedMachine{});
    SetEmulatedEngines(std::move(engines));
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
    auto cudnn = CudnnConvolutions::Create(EmulatedApi(), options, stream_);
    REQUIRE(cudnn.ok());
    cudnn_ = std::move(cudnn).value();
  }
  ~Machine() {
    cudnn_.reset();
    CHECK(UseOfEmulatedRuntime().objects == 0);
    CHECK(cudaStreamDestroy(stream_) == cudaSuccess);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  CudnnConvolutions& cudnn() { return *cudnn_; }
  cudaStream_t stream() const { return stream_; }

  EngineChoice Choose(const ConvolutionShape& shape, ConvPass pass = ConvPass::kForward) {
    const auto convolution = cudnn_->Prepare(shape, pass);
    REQUIRE(convolution.ok());
    return (*convolution)->choice();
  }
  std::string Refusal(const ConvolutionShape& shape, ConvPass pass) {
    const auto none = cudnn_->Prepare(shape, pass);
    REQUIRE(!none.ok());
    CHECK(none.error().code == ErrorCode::kUnsupported);
    return none.error().message;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudnnConvolutions> cudnn_;
};

// 2 samples, 2 groups of 3 and 2 channels; each axis has a different size.
ConvolutionShape Shape() {
  ConvolutionShape shape;
  shape.batch = 2;
  shape.groups = 2;
  shape.in_channels = 3;
  shape.out_channels = 2;
  shape.in = {7, 9};
  shape.kernel = {3, 2};
  shape.strides = {2, 3};
  shape.dilations = {1, 2};
  shape.pads = {1, 2};
  shape.out = {4, 4};
  return shape;
}

ConvolutionShape HalfShape() {
  ConvolutionShape shape = Shape();
  shape.type = ElementType::kBFloat16;
  return shape;
}

std::vector<float> Numbers(size_t count, size_t factor) {
  std::vector<float> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i * factor % 13) - 6);
  return numbers;
}

constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kBackwardData,
                                ConvPass::kBackwardWeights};

TEST_CASE("cudnn: the three passes receive shapes, pads, strides, dilations and groups") {
  Machine machine({{.number = 1, .workspace_bytes = 64}});
  const ConvolutionShape shape = Shape();
  for (const ConvPass pass : kPasses) {
    std::vector<float> x = Numbers(2 * 6 * 7 * 9, 5);
    std::vector<float> w = Numbers(4 * 3 * 3 * 2, 7);
    std::vector<float> y = Numbers(2 * 4 * 4 * 4, 3);
    OnGpu<float> x2(x), w2(w), y2(y), workspace(Numbers(16, 1));
    const auto convolution = machine.cudnn().Prepare(shape, pass);
    REQUIRE(convolution.ok());
    CHECK((*convolution)->workspace() == 64);
    (*convolution)->Run(x2.data(), w2.data(), y2.data(), workspace.data());
    CHECK(workspace.values() == Numbers(16, 1));  // The call waits in the stream.
    REQUIRE(cudaStreamSynchronize(machine.stream()) == cudaSuccess);
    RunPlainConvolution(shape, pass, x.data(), w.data(), y.data());
    CHECK(x2.values() == x);
    CHECK(w2.values() == w);
    CHECK(y2.values() == y);
    CHECK(workspace.values() != Numbers(16, 1));
  }
}

TEST_CASE("cudnn: the fastest deterministic engine within the limit is chosen") {
  const std::vector<EmulatedEngine> engines = {
      {.number = 10, .is_deterministic = false},
      {.number = 11, .makes_plans = false},
      {.number = 12, .sums_in_float32 = false},
      {.number = 13, .workspace_bytes = 4096},
      {.number = 14, .workspace_bytes = 100},
      {.number = 15, .workspace_bytes = 0},
      {.number = 16, .workspace_bytes = 0, .is_fallback = true}};
  {
    Machine wide(engines);
    for (const ConvPass pass : kPasses) {
      const EngineChoice choice = wide.Choose(Shape(), pass);
      CHECK(choice.engine == 13);
      CHECK(choice.rank == 4);
      CHECK(choice.workspace == 4096);
    }
    CHECK(wide.Choose(HalfShape()).engine == 13);
  }
  Machine narrow(engines, {.workspace_limit = 100});
  CHECK(narrow.Choose(Shape(), ConvPass::kBackwardWeights).engine == 14);
}

TEST_CASE("cudnn: engines that are no more than fallbacks are taken if no other will do") {
  Machine machine({{.number = 1, .is_deterministic = false},
                   {.number = 2, .workspace_bytes = 512, .is_fallback = true},
                   {.number = 3, .is_fallback = true}});
  const EngineChoice choice = machine.Choose(Shape());
  CHECK(choice.engine == 2);
  CHECK(choice.rank == 2);
}

constexpr int64_t kGiB = int64_t{1} << 30;

TEST_CASE("cudnn: no engine is within the limit") {
  const std::vector<EmulatedEngine> engines = {{.number = 0, .is_deterministic = false},
                                               {.number = 1, .workspace_bytes = 2 * kGiB},
                                               {.number = 2, .workspace_bytes = kGiB},
                                               {.number = 3, .workspace_bytes = 3 * kGiB}};
  {
    Machine limited(engines, {.workspace_limit = 100});
    const std::string refusal = limited.Refusal(Shape(), ConvPass::kBackwardData);
    CHECK(refusal.find("the gradient of a convolution's input") != std::string::npos);
    CHECK(refusal.find("raise the workspace limit to 1073741824") != std::string::npos);
  }
  // The user did not request the default limit, so the engine with the smallest workspace may
  // exceed it.
  Machine usual(engines);
  CHECK(usual.Choose(Shape()).workspace == kGiB);
}

TEST_CASE("cudnn: a refusal says why the first engine was not taken") {
  {
    Machine machine({{.number = 1, .is_deterministic = false}});
    CHECK(machine.Refusal(Shape(), ConvPass::kForward) ==
          "cuDNN for a convolution: it has no deterministic engine for this shape; its first "
          "engine is not deterministic");
  }
  Machine machine({{.number = 1, .makes_plans = false}});
  CHECK(machine.Refusal(Shape(), ConvPass::kForward).find("the engine cannot make a plan") !=
        std::string::npos);
}

TEST_CASE("cudnn: an engine of tensor cores is taken for float32 only if TF32 is allowed") {
  const std::vector<EmulatedEngine> engines = {{.number = 1, .has_tensor_cores = true},
                                               {.number = 2}};
  {
    Machine exact(engines);
    CHECK(exact.Choose(Shape()).engine == 2);
    CHECK_FALSE(exact.Choose(Shape()).uses_tensor_cores);
    CHECK(exact.Choose(HalfShape()).engine == 1);
  }
  Machine quick(engines, {.allow_tf32 = true});
  CHECK(quick.Choose(Shape()).engine == 1);
  CHECK(quick.Choose(Shape()).uses_tensor_cores);
}

TEST_CASE(
    "cudnn: the default limit does not cost tensor cores, and a limit that is asked for does") {
  const std::vector<EmulatedEngine> engines = {
      {.number = 1, .workspace_bytes = 2 * kGiB, .has_tensor_cores = true},
      {.number = 2, .workspace_bytes = kGiB, .has_tensor_cores = true},
      {.number = 3, .workspace_bytes = 512}};
  {
    Machine usual(engines);
    CHECK(usual.Choose(HalfShape()).engine == 2);
    CHECK(usual.Choose(Shape()).engine == 3);
  }
  Machine limited(engines, {.workspace_limit = kGiB - 1});
  CHECK(limited.Choose(HalfShape()).engine == 3);
}

TEST_CASE("cudnn: a plan is made once for each shape and pass") {
  Machine machine(std::vector<EmulatedEngine>{{.number = 1}});
  const auto finalized = [] { return CallsOfEmulatedRuntime()["cudnnBackendFinalize"]; };
  machine.Choose(Shape());
  const int64_t first = finalized();
  CHECK(first > 0);
  machine.Choose(Shape());
  CHECK(finalized() == first);
  machine.Choose(Shape(), ConvPass::kBackwardData);
  const int64_t second = finalized();
  CHECK(second > first);
  machine.Choose(HalfShape());
  CHECK(finalized() > second);
}

TEST_CASE("cudnn: a GPU that is only described has the engines of one that is there") {
  const std::string properties = PropertiesJson({.name = "a GPU", .compute_capability = 90});
  Machine machine({{.number = 1, .is_deterministic = false}, {.number = 2, .workspace_bytes = 64}});
  auto described = CudnnConvolutions::Describe(EmulatedApi(), {}, properties);
  REQUIRE(described.ok());
  for (const ConvPass pass : kPasses) {
    const auto convolution = (*described)->Prepare(Shape(), pass);
    REQUIRE(convolution.ok());
    CHECK((*convolution)->choice().engine == machine.Choose(Shape(), pass).engine);
    CHECK((*convolution)->workspace() == 64);
  }
  const auto lacking = CudnnConvolutions::Describe(EmulatedApi(), {}, R"({"warpSize":32})");
  REQUIRE(!lacking.ok());
  CHECK(lacking.error().message.find("missing device property: maxGridSize") != std::string::npos);
  CudnnApi older = EmulatedApi();
  older.get_version = [] { return size_t{90701}; };
  const auto refused = CudnnConvolutions::Describe(older, {}, properties);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message ==
        "cuDNN 9.7.1 only knows the GPU that it runs on; install 9.8 or newer to describe other "
        "GPUs");
}

TEST_CASE("cudnn: tensors whose sizes exceed 32 bits are refused") {
  Machine machine(std::vector<EmulatedEngine>{{.number = 1}});
  ConvolutionShape shape = Shape();
  shape.batch = int64_t{1} << 23;  // 6 x 7 x 9 x 2^23 elements.
  CHECK(machine.cudnn().Prepare(shape, ConvPass::kForward).error().code == ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ckplan::cuda
