// Asks the real cuDNN about GPUs that are not there. The tests are skipped, with a message, where
// no cuDNN is found that can answer.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/executor/cuda/gpu/cuda_libraries.h"
#include "lib/executor/cuda/gpu/cudnn_attention.h"
#include "lib/executor/cuda/gpu/cudnn_convolution.h"
#include "lib/executor/cuda/gpu/shared_library.h"

namespace ckplan::cuda {
namespace {

// They have the figures of devices.json.
const GpuDescription kA100{"A100", int64_t{80} << 30, 80, 108, 166912, 41943040, 1410000, 1593000};
const GpuDescription kH100{"H100", int64_t{80} << 30, 90, 132, 232448, 52428800, 1980000, 2619000};
const GpuDescription kB200{"B200", int64_t{180} << 30, 100,     148,
                           232448, 132644864,          1965000, 3996000};

[[noreturn]] void Skip(const std::string& why) {
  constexpr int kSkipped = 77;  // The exit code that CTest counts as skipped.
  std::fprintf(stderr, "SKIPPED: no test of this program was run: %s\n", why.c_str());
  std::exit(kSkipped);
}

const CudnnApi& RealApi() {
  dlopen(CKPLAN_ABSENT_DRIVER, RTLD_NOW | RTLD_GLOBAL);  // As LoadAbsentDriver does for programs.
  static const Result<CudnnApi> api = CudnnApi::Load(LibraryFolders());
  if (!api.ok()) Skip(api.error().message);
  if (api->version() < 90800) Skip("cuDNN " + api->VersionText() + " is older than 9.8");
  return *api;
}

std::unique_ptr<CudnnConvolutions> CudnnFor(const GpuDescription& gpu,
                                            const DeviceOptions& options = {}) {
  auto cudnn = CudnnConvolutions::Describe(RealApi(), options, PropertiesJson(gpu));
  REQUIRE(cudnn.ok());
  return std::move(cudnn).value();
}

// A convolution of ResNet-50 at a batch of 256.
ConvolutionShape Shape(ElementType type = ElementType::kFloat32) {
  ConvolutionShape shape;
  shape.type = type;
  shape.batch = 256;
  shape.in_channels = 64;
  shape.out_channels = 64;
  shape.in = {56, 56};
  shape.kernel = {3, 3};
  shape.strides = {1, 1};
  shape.dilations = {1, 1};
  shape.pads = {1, 1};
  shape.out = {56, 56};
  return shape;
}

constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kBackwardData,
                                ConvPass::kBackwardWeights};

EngineChoice Choose(CudnnConvolutions& cudnn, const ConvolutionShape& shape, ConvPass pass) {
  const auto convolution = cudnn.Prepare(shape, pass);
  if (!convolution.ok()) FAIL(convolution.error().message);
  return (*convolution)->choice();
}

TEST_CASE("real cudnn: every pass has an engine on A100, H100 and B200, in every arithmetic") {
  for (const GpuDescription& gpu : {kA100, kH100, kB200}) {
    CAPTURE(gpu.name);
    const auto exact = CudnnFor(gpu);
    const auto quick = CudnnFor(gpu, {.allow_tf32 = true});
    for (const ConvPass pass : kPasses) {
      CAPTURE(static_cast<int>(pass));
      CHECK_FALSE(Choose(*exact, Shape(), pass).uses_tensor_cores);
      CHECK(Choose(*quick, Shape(), pass).uses_tensor_cores);
      CHECK(Choose(*exact, Shape(ElementType::kBFloat16), pass).uses_tensor_cores);
    }
  }
}

TEST_CASE("real cudnn: the limit of the workspace is heeded, and named where it is too low") {
  constexpr int64_t kLimit = int64_t{64} << 20;
  const auto wide = CudnnFor(kH100, {.allow_tf32 = true, .workspace_limit = int64_t{1} << 31});
  const auto narrow = CudnnFor(kH100, {.allow_tf32 = true, .workspace_limit = kLimit});
  bool is_narrower = false;
  for (const ConvPass pass : kPasses) {
    const int64_t wanted = Choose(*wide, Shape(), pass).workspace;
    const auto convolution = narrow->Prepare(Shape(), pass);
    if (convolution.ok()) {
      CHECK((*convolution)->workspace() <= kLimit);
    } else {
      CHECK(convolution.error().message.find("raise the workspace limit to ") != std::string::npos);
    }
    is_narrower = is_narrower || wanted > kLimit;
  }
  CHECK(is_narrower);  // Otherwise the limit would decide nothing.
}

TEST_CASE("real cudnn: the same question has the same answer") {
  const auto first = CudnnFor(kH100);
  const auto second = CudnnFor(kH100);
  for (const ConvPass pass : kPasses) {
    const EngineChoice one = Choose(*first, Shape(), pass);
    const EngineChoice other = Choose(*second, Shape(), pass);
    CHECK(one.engine == other.engine);
    CHECK(one.rank == other.rank);
    CHECK(one.workspace == other.workspace);
  }
}

TEST_CASE("real cudnn: groups, dilations, strides, three axes and small tensors are understood") {
  ConvolutionShape shape = Shape();
  shape.batch = 2;
  shape.groups = 32;
  shape.in_channels = shape.out_channels = 2;
  shape.strides = {2, 2};
  shape.out = {28, 28};
  ConvolutionShape wide = shape;
  wide.groups = 1;
  wide.strides = {1, 1};
  wide.dilations = {2, 2};
  wide.out = {54, 54};
  ConvolutionShape deep = wide;
  deep.in = {4, 9, 8};
  deep.kernel = {3, 3, 3};
  deep.strides = deep.dilations = deep.pads = {1, 1, 1};
  deep.out = {4, 9, 8};
  const auto cudnn = CudnnFor(kH100);
  for (const ConvolutionShape& each : {shape, wide, deep}) {
    for (const ConvPass pass : kPasses) Choose(*cudnn, each, pass);
  }
}

TEST_CASE("real cudnn: bf16 with the channels last has engines for few channels and for groups") {
  ConvolutionShape last = Shape(ElementType::kBFloat16);
  last.is_channels_last = true;
  ConvolutionShape images = last;
  images.in_channels = 3;
  images.in = {224, 224};
  images.kernel = {7, 7};
  images.strides = {2, 2};
  images.pads = {3, 3};
  images.out = {112, 112};
  ConvolutionShape grouped = last;
  grouped.groups = 32;
  grouped.in_channels = grouped.out_channels = 2;
  ConvolutionShape depthwise = last;
  depthwise.groups = 64;
  depthwise.in_channels = depthwise.out_channels = 1;
  for (const GpuDescription& gpu : {kA100, kH100, kB200}) {
    CAPTURE(gpu.name);
    const auto cudnn = CudnnFor(gpu);
    for (const ConvolutionShape& each : {last, images, grouped, depthwise}) {
      CAPTURE(each.groups);
      CAPTURE(each.in_channels);
      for (const ConvPass pass : kPasses) {
        CAPTURE(static_cast<int>(pass));
        Choose(*cudnn, each, pass);
      }
    }
  }
}

// With channels first, the engines for bf16 copy all three tensors to the other order in their
// workspace.
TEST_CASE(
    "real cudnn: bf16 with channels first takes a copy of each tensor more than channels last") {
  const auto device = DescribeDevice(RealApi(), PropertiesJson(kH100));
  REQUIRE(device.ok());
  const CudnnTarget target{nullptr, &*device};
  const DeviceOptions unlimited{.workspace_limit = int64_t{1} << 33};
  const int64_t image = 256 * 64 * 56 * 56;
  const int64_t copies = (2 * image + 64 * 64 * 3 * 3) * 2;
  constexpr int64_t kMiB = int64_t{1} << 20;
  for (const ConvPass pass : kPasses) {
    CAPTURE(static_cast<int>(pass));
    const auto workspace = [&](bool is_channels_last) {
      ConvolutionShape shape = Shape(ElementType::kBFloat16);
      shape.is_channels_last = is_channels_last;
      const auto plan = MakeCudnnPlan(RealApi(), target, shape, pass, unlimited);
      REQUIRE(plan.ok());
      CHECK((*plan)->choice.uses_tensor_cores);
      return (*plan)->choice.workspace;
    };
    const int64_t more = workspace(false) - workspace(true);
    CHECK(more > copies - 2 * kMiB);
    CHECK(more < copies + 2 * kMiB);
  }
}

// The heads of a layer of BERT, or of GPT-2, lie side by side.
LibraryAttentionShape Heads(int64_t batch, int64_t rows) {
  constexpr int64_t kHeads = 12, kSize = 64;
  LibraryAttentionShape shape;
  shape.batch = batch;
  shape.heads = kHeads;
  shape.queries = shape.keys = rows;
  shape.size = shape.value_size = kSize;
  shape.q = shape.k = shape.v = shape.y = {rows * kHeads * kSize, kSize, kHeads * kSize};
  shape.scale = 0.125F;
  return shape;
}

EngineChoice Choose(CudnnAttentions& cudnn, const LibraryAttentionShape& shape,
                    AttentionPass pass) {
  const auto attention = cudnn.Prepare(shape, pass);
  if (!attention.ok()) FAIL(attention.error().message);
  CHECK((*attention)->choice().uses_tensor_cores);
  return (*attention)->choice();
}

TEST_CASE("real cudnn: attention of BERT and GPT-2 has engines on A100, H100 and B200") {
  const LibraryAttentionShape bert = Heads(32, 512);
  LibraryAttentionShape causal = Heads(8, 1024);
  causal.is_causal = true;
  LibraryAttentionShape masked = Heads(8, 1024);
  masked.has_bias = true;
  masked.bias_batch = 8;
  LibraryAttentionShape biased = bert;
  biased.has_bias = true;
  biased.bias_type = ElementType::kFloat32;
  for (const GpuDescription& gpu : {kA100, kH100, kB200}) {
    CAPTURE(gpu.name);
    const auto beside = CudnnFor(gpu);
    CudnnAttentions cudnn(beside->api(), beside->target(), {});
    for (const LibraryAttentionShape& each : {bert, biased, causal, masked}) {
      CAPTURE(each.queries);
      CAPTURE(each.is_causal);
      CAPTURE(each.has_bias);
      CHECK(Choose(cudnn, each, AttentionPass::kForward).workspace <= 256);
      // It keeps dS, and takes the dots of rows with them.
      const int64_t scores = each.batch * each.heads * each.queries * each.keys * 2;
      const int64_t dots = each.batch * each.heads * each.queries * 4;
      const int64_t taken = Choose(cudnn, each, AttentionPass::kBackward).workspace;
      CHECK(taken >= scores + dots);
      CHECK(taken <= scores + dots + 1024);
    }
  }
}

TEST_CASE("real cudnn: attention with short heads, odd lengths, and its rows apart") {
  const auto beside = CudnnFor(kH100);
  CudnnAttentions cudnn(beside->api(), beside->target(), {});
  LibraryAttentionShape small;
  small.batch = 2;
  small.heads = 3;
  small.queries = 5;
  small.keys = 7;
  small.size = 8;
  small.value_size = 16;
  small.q = {3 * 5 * 8, 5 * 8, 8};
  small.k = {3 * 7 * 8, 7 * 8, 8};
  small.v = {7 * 3 * 16, 16, 3 * 16};
  small.y = {5 * 3 * 16, 16, 3 * 16};
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    Choose(cudnn, small, pass);
  }
}

TEST_CASE("real cudnn: a limit below what the gradients of attention need is named") {
  const auto beside = CudnnFor(kH100);
  CudnnAttentions narrow(beside->api(), beside->target(), {.workspace_limit = 1 << 20});
  CHECK(narrow.Prepare(Heads(32, 512), AttentionPass::kForward).ok());
  const auto none = narrow.Prepare(Heads(32, 512), AttentionPass::kBackward);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("raise the workspace limit to ") != std::string::npos);
  CudnnAttentions usual(beside->api(), beside->target(), {});
  CHECK_FALSE(usual.Prepare(Heads(64, 512), AttentionPass::kBackward).ok());
}

TEST_CASE("real cudnn: properties that lack something, and a GPU that it does not know") {
  std::string lacking = PropertiesJson(kH100);
  const std::string key = "\"warpSize\":32,";
  lacking.erase(lacking.find(key), key.size());
  const auto none = CudnnConvolutions::Describe(RealApi(), {}, lacking);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::kUnsupported);
  CHECK(none.error().message.find("cuDNN rejects") == 0);
  GpuDescription old = kH100;
  old.compute_capability = 30;
  CHECK_FALSE(CudnnConvolutions::Describe(RealApi(), {}, PropertiesJson(old)).ok());
}

}  // namespace
}  // namespace ckplan::cuda
