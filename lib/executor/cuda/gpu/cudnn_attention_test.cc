// Checks the calls of cuDNN for attention with a replacement that computes its graphs operation by
// operation, as the descriptors say (emulated/emulated_graph.cc), and ends the program if a rule is
// broken.
#include "lib/executor/cuda/gpu/cudnn_attention.h"

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/executor/cuda/gpu/cuda_libraries.h"
#include "lib/executor/cuda/gpu/cudnn_convolution.h"
#include "lib/executor/cuda/gpu/emulated_gpu.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/testing/emulated/emulated_cudnn.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {
namespace {

using Halves = std::vector<uint16_t>;

constexpr AttentionPass kAttentionPasses[] = {AttentionPass::kForward, AttentionPass::kBackward};

// Computes attention and its gradients in plain loops of double precision.
struct PlainAttention {
  std::vector<double> y, log_sums, dq, dk, dv;

  PlainAttention(const LibraryAttentionShape& shape, const Halves& q, const Halves& k,
                 const Halves& v, const std::vector<float>& bias, const Halves& dy)
      : y(dy.size()),
        log_sums(static_cast<size_t>(shape.batch * shape.heads * shape.queries)),
        dq(q.size()),
        dk(k.size()),
        dv(v.size()) {
    for (int64_t n = 0; n < shape.batch; ++n) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        for (int64_t row = 0; row < shape.queries; ++row)
          AddRow(shape, q, k, v, bias, dy, n, h, row);
      }
    }
  }

 private:
  static size_t At(const LibraryRows& rows, int64_t n, int64_t h, int64_t row, int64_t i) {
    return static_cast<size_t>(n * rows.batch_stride + h * rows.head_stride +
                               row * rows.row_stride + i);
  }
  static double Value(const Halves& halves, size_t at) { return FromBFloat16(halves[at]); }

  void AddRow(const LibraryAttentionShape& shape, const Halves& q, const Halves& k, const Halves& v,
              const std::vector<float>& bias, const Halves& dy, int64_t n, int64_t h, int64_t row) {
    const auto keys = static_cast<size_t>(shape.is_causal ? row + 1 : shape.keys);
    std::vector<double> p(keys), arriving(keys);
    double sum = 0, dot = 0;
    for (size_t key = 0; key < keys; ++key) {
      const auto at = static_cast<int64_t>(key);
      double score = 0;
      for (int64_t i = 0; i < shape.size; ++i) {
        score += Value(q, At(shape.q, n, h, row, i)) * Value(k, At(shape.k, n, h, at, i));
      }
      score *= static_cast<double>(shape.scale);
      if (shape.has_bias) {
        score += static_cast<double>(bias[static_cast<size_t>(
            ((n % shape.bias_batch * shape.bias_heads + h % shape.bias_heads) * shape.queries +
             row) *
                shape.keys +
            at)]);
      }
      sum += p[key] = std::exp(score);
      for (int64_t i = 0; i < shape.value_size; ++i) {
        arriving[key] += Value(dy, At(shape.y, n, h, row, i)) * Value(v, At(shape.v, n, h, at, i));
      }
    }
    log_sums[static_cast<size_t>((n * shape.heads + h) * shape.queries + row)] = std::log(sum);
    for (size_t key = 0; key < keys; ++key) dot += (p[key] /= sum) * arriving[key];
    for (size_t key = 0; key < keys; ++key) {
      const auto at = static_cast<int64_t>(key);
      const double ds = p[key] * (arriving[key] - dot) * static_cast<double>(shape.scale);
      for (int64_t i = 0; i < shape.value_size; ++i) {
        y[At(shape.y, n, h, row, i)] += p[key] * Value(v, At(shape.v, n, h, at, i));
        dv[At(shape.v, n, h, at, i)] += p[key] * Value(dy, At(shape.y, n, h, row, i));
      }
      for (int64_t i = 0; i < shape.size; ++i) {
        dq[At(shape.q, n, h, row, i)] += ds * Value(k, At(shape.k, n, h, at, i));
        dk[At(shape.k, n, h, at, i)] += ds * Value(q, At(shape.q, n, h, row, i));
      }
    }
  }
};

// 2 samples, 3 heads, rows of 8 and 16 elements. Queries and the output have their heads side by
// side, keys and values apart.
LibraryAttentionShape SmallAttention() {
  LibraryAttentionShape shape;
  shape.batch = 2;
  shape.heads = 3;
  shape.queries = 5;
  shape.keys = 7;
  shape.size = 8;
  shape.value_size = 16;
  shape.q = {5 * 24, 8, 24};
  shape.k = {3 * 56, 56, 8};
  shape.v = {3 * 112, 112, 16};
  shape.y = {5 * 48, 16, 48};
  shape.scale = 0.25F;
  return shape;
}

LibraryAttentionShape CausalAttention() {
  LibraryAttentionShape shape = SmallAttention();
  shape.is_causal = true;
  return shape;
}

LibraryAttentionShape BiasedAttention() {
  LibraryAttentionShape shape = SmallAttention();
  shape.has_bias = true;
  shape.bias_type = ElementType::kFloat32;
  shape.bias_heads = 3;
  return shape;
}

Halves HalvesOf(int64_t count, int64_t factor) {
  Halves halves;
  for (int64_t i = 0; i < count; ++i) {
    halves.push_back(ToBFloat16(static_cast<float>(i * factor % 17 - 8) / 8));
  }
  return halves;
}

bool AreNear(const Halves& found, const std::vector<double>& expected) {
  double most = 0, difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    most = std::max(most, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(FromBFloat16(found[i]) - expected[i]));
  }
  return most > 0 && difference <= 0.02 * most;
}

// An emulated GPU, and attention prepared on it.
class AttentionMachine {
 public:
  explicit AttentionMachine(std::vector<EmulatedEngine> engines, const DeviceOptions& options = {},
                            std::set<std::string> faults = {}) {
    EmulatedMachine machine;
    machine.faults = std::move(faults);
    StartEmulatedRuntime(machine);
    SetEmulatedEngines(std::move(engines));
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
    auto cudnn = CudnnConvolutions::Create(EmulatedApi(), options, stream_);
    REQUIRE(cudnn.ok());
    beside_ = std::move(cudnn).value();
    cudnn_ = std::make_unique<CudnnAttentions>(beside_->api(), beside_->target(), options);
  }
  ~AttentionMachine() {
    cudnn_.reset();
    beside_.reset();
    CHECK(UseOfEmulatedRuntime().objects == 0);
    CHECK(cudaStreamDestroy(stream_) == cudaSuccess);
  }
  AttentionMachine(const AttentionMachine&) = delete;
  AttentionMachine& operator=(const AttentionMachine&) = delete;

  CudnnAttentions& cudnn() { return *cudnn_; }

  std::string Refusal(const LibraryAttentionShape& shape, AttentionPass pass) {
    const auto none = cudnn_->Prepare(shape, pass);
    REQUIRE(!none.ok());
    CHECK(none.error().code == ErrorCode::kUnsupported);
    return none.error().message;
  }

  // Runs both passes, and returns whether all results are those of plain loops.
  bool IsRight(const LibraryAttentionShape& shape) {
    const int64_t pairs = shape.batch * shape.heads;
    const Halves q = HalvesOf(pairs * shape.queries * shape.size, 5);
    const Halves k = HalvesOf(pairs * shape.keys * shape.size, 7);
    const Halves v = HalvesOf(pairs * shape.keys * shape.value_size, 3);
    const Halves dy = HalvesOf(pairs * shape.queries * shape.value_size, 11);
    std::vector<float> bias;
    for (int64_t i = 0; i < shape.bias_heads * shape.queries * shape.keys; ++i) {
      bias.push_back(static_cast<float>(i * 3 % 5) / 4);
    }
    OnGpu<uint16_t> q2(q), k2(k), v2(v), dy2(dy), y2(Halves(dy.size())), dq2(Halves(q.size())),
        dk2(Halves(k.size())), dv2(Halves(v.size()));
    OnGpu<float> bias2(bias), sums2(std::vector<float>(static_cast<size_t>(pairs * shape.queries)));
    AttentionTensors tensors;
    tensors.q = q2.data();
    tensors.k = k2.data();
    tensors.v = v2.data();
    tensors.bias = bias2.data();
    tensors.dy = dy2.data();
    tensors.y = y2.data();
    tensors.log_sums = sums2.data();
    tensors.dq = dq2.data();
    tensors.dk = dk2.data();
    tensors.dv = dv2.data();
    for (const AttentionPass pass : kAttentionPasses) {
      const auto attention = cudnn_->Prepare(shape, pass);
      REQUIRE(attention.ok());
      OnGpu<char> workspace(std::vector<char>(static_cast<size_t>((*attention)->workspace()) + 1));
      const Halves before = pass == AttentionPass::kForward ? y2.values() : dq2.values();
      (*attention)->Run(tensors, workspace.data());
      CHECK((pass == AttentionPass::kForward ? y2 : dq2).values() == before);  // It waits.
      REQUIRE(cudaStreamSynchronize(stream_) == cudaSuccess);
    }
    const PlainAttention plain(shape, q, k, v, bias, dy);
    const std::vector<float> sums = sums2.values();
    bool is_right = true;
    for (size_t i = 0; i < sums.size(); ++i) {
      is_right = is_right && std::fabs(static_cast<double>(sums[i]) - plain.log_sums[i]) < 1e-4;
    }
    return is_right && AreNear(y2.values(), plain.y) && AreNear(dq2.values(), plain.dq) &&
           AreNear(dk2.values(), plain.dk) && AreNear(dv2.values(), plain.dv);
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudnnConvolutions> beside_;
  std::unique_ptr<CudnnAttentions> cudnn_;
};

const std::vector<EmulatedEngine> kOneEngine = {
    {.number = 1, .workspace_bytes = 64, .has_tensor_cores = true}};

TEST_CASE("cudnn: attention and its gradients receive rows, scale, mask and bias") {
  AttentionMachine machine(kOneEngine);
  CHECK(machine.IsRight(SmallAttention()));
  CHECK(machine.IsRight(CausalAttention()));
  CHECK(machine.IsRight(BiasedAttention()));
}

TEST_CASE("cudnn: a stride or transposed sums that are wrong change the results of attention") {
  for (const std::string fault :
       {"an attention has a wrong stride", "the sums of an attention are transposed"}) {
    CAPTURE(fault);
    AttentionMachine machine(kOneEngine, {}, {fault});
    CHECK_FALSE(machine.IsRight(SmallAttention()));
  }
}

TEST_CASE("cudnn: the workspace of attention holds dS and the dots of rows") {
  AttentionMachine machine(kOneEngine);
  const auto forward = machine.cudnn().Prepare(SmallAttention(), AttentionPass::kForward);
  const auto backward = machine.cudnn().Prepare(SmallAttention(), AttentionPass::kBackward);
  REQUIRE(forward.ok());
  REQUIRE(backward.ok());
  CHECK((*forward)->workspace() == 256);         // 64, to the next multiple of 256.
  CHECK((*backward)->workspace() == 512 + 256);  // 64 + 2 · 3 · 5 · 7 · 2, and 2 · 3 · 5 · 4.
}

TEST_CASE("cudnn: gradients of attention are taken of no engine that may sum in any order") {
  AttentionMachine machine({{.number = 1, .is_deterministic = false, .has_tensor_cores = true},
                            {.number = 2,
                             .workspace_bytes = 64,
                             .has_tensor_cores = true,
                             .keeps_score_gradients = false},
                            {.number = 3, .has_tensor_cores = true}});
  const auto backward = machine.cudnn().Prepare(SmallAttention(), AttentionPass::kBackward);
  REQUIRE(backward.ok());
  CHECK((*backward)->choice().engine == 3);
  CHECK((*backward)->choice().rank == 3);
  const auto forward = machine.cudnn().Prepare(SmallAttention(), AttentionPass::kForward);
  REQUIRE(forward.ok());
  CHECK((*forward)->choice().engine == 2);
}

TEST_CASE("cudnn: gradients of attention without an engine that keeps dS are refused") {
  AttentionMachine machine(
      {{.number = 2, .has_tensor_cores = true, .keeps_score_gradients = false}});
  CHECK(machine.Refusal(SmallAttention(), AttentionPass::kBackward) ==
        "cuDNN for the gradients of attention: it has no deterministic engine for this shape; its "
        "first engine sums in an order that is not always the same");
}

TEST_CASE("cudnn: attention beyond the limit of the workspace is refused, and says what would do") {
  AttentionMachine machine(kOneEngine, {.workspace_limit = 400});
  CHECK(machine.cudnn().Prepare(SmallAttention(), AttentionPass::kForward).ok());
  CHECK(machine.Refusal(SmallAttention(), AttentionPass::kBackward)
            .find("raise the workspace limit to 484") != std::string::npos);
}

TEST_CASE("cudnn: attention has the usual limit of the workspace where none is asked for") {
  LibraryAttentionShape large = SmallAttention();
  large.queries = large.keys = 8192;  // 768 MiB of dS, beyond the usual limit.
  large.q = large.k = {3 * 8192 * 8, 8192 * 8, 8};
  large.v = large.y = {3 * 8192 * 16, 8192 * 16, 16};
  AttentionMachine machine(kOneEngine);
  CHECK(machine.Refusal(large, AttentionPass::kBackward).find("raise the workspace limit to 805") !=
        std::string::npos);
}

}  // namespace
}  // namespace ckplan::cuda
