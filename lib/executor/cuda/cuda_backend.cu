#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/cuda_backend.h"
#include "lib/executor/cuda/cuda_check.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cuda_device.h"
#include "lib/executor/cuda/gpu/cuda_libraries.h"
#include "lib/executor/cuda/host_fallback.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/shape_rules.h"
#include "lib/executor/scalar/step_loss.h"
#include "lib/problem/ops/families.h"

namespace ckplan::cuda {

namespace {

// The loss of a training step on the GPU (lib/executor/backend/backend.h).

inline constexpr int64_t kStepLossScratch =
    scalar::kLossParts * static_cast<int64_t>(sizeof(double));

struct AddDoubles {
  CKPLAN_DEVICE double operator()(double a, double b) const { return a + b; }
};

// Each thread computes one part of the sum.
void StartGivenLoss(Device& device, const LossCall& call, int64_t parts, double* part_sums) {
  const int64_t count = call.output.elements();
  const scalar::GivenGradient given = scalar::GivenGradientOf(call.seed, count);
  const FloatsIn values(call.contents, call.output.type);
  const FloatsOut gradient(call.gradient, call.output.type);
  ForEach(device, parts, [=] CKPLAN_KERNEL(int64_t part) {
    double sum = 0;
    for (int64_t i = part; i < count; i += scalar::kLossParts) {
      gradient.Set(i, given(i));
      sum += static_cast<double>(values[i]) * static_cast<double>(gradient[i]);
    }
    part_sums[part] = sum;
  });
}

// Each warp computes one part of the sum. The classes of a position are adjacent.
void StartCrossEntropyOfRows(Device& device, const scalar::CrossEntropy& entropy, FloatsIn scores,
                             FloatsOut gradient, int64_t parts, double* part_sums) {
  static_assert(kWarpTeam == scalar::kClassParts);
  const int64_t short_row =
      kWarpTeam;  // Selects teams of one warp, whatever the number of classes.
  ForRows(device, parts, short_row, [=] CKPLAN_KERNEL(const Team& team, int64_t part) {
    const int64_t positions = entropy.positions();
    double loss = 0;
    for (int64_t position = part; position < positions; position += scalar::kLossParts) {
      const scalar::ClassScores at = entropy.ScoresOf(position);
      const int64_t label = entropy.LabelOf(position);
      const float largest = team.Reduce(
          entropy.classes, -INFINITY, [&](int64_t c) { return scores[at.At(c)]; }, LargerOf());
      const double sum = team.Reduce(
          entropy.classes, 0.0,
          [&](int64_t c) {
            return scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
          },
          AddDoubles());
      loss += entropy.LossOf(sum, scores[at.At(label)], largest);
      team.ForEach(entropy.classes, [&](int64_t c) {
        const double exponential =
            scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
        gradient.Set(at.At(c), entropy.GradientOf(exponential, sum, c == label));
      });
    }
    if (team.IsFirst()) part_sums[part] = loss;
  });
}

// Each thread computes one part of the sum. The scores of neighbouring positions are adjacent.
void StartCrossEntropyOfImages(Device& device, const scalar::CrossEntropy& entropy, FloatsIn scores,
                               FloatsOut gradient, int64_t parts, double* part_sums) {
  ForEach(device, parts, [=] CKPLAN_KERNEL(int64_t part) {
    const int64_t positions = entropy.positions();
    double loss = 0;
    for (int64_t position = part; position < positions; position += scalar::kLossParts) {
      const scalar::ClassScores at = entropy.ScoresOf(position);
      const int64_t label = entropy.LabelOf(position);
      float largest = -INFINITY;
      for (int64_t c = 0; c < entropy.classes; ++c) {
        largest = LargerOf()(largest, scores[at.At(c)]);
      }
      double sum = 0;
      for (int64_t c = 0; c < entropy.classes; ++c) {
        sum += scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
      }
      loss += entropy.LossOf(sum, scores[at.At(label)], largest);
      for (int64_t c = 0; c < entropy.classes; ++c) {
        const double exponential =
            scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
        gradient.Set(at.At(c), entropy.GradientOf(exponential, sum, c == label));
      }
    }
    part_sums[part] = loss;
  });
}

// Returns the number of terms of the loss.
int64_t StartLoss(Device& device, const LossCall& call, double* part_sums) {
  if (call.kind == LossKind::kGiven) {
    const int64_t count = call.output.elements();
    StartGivenLoss(device, call, std::min(count, scalar::kLossParts), part_sums);
    return count;
  }
  const scalar::CrossEntropy entropy =
      scalar::CrossEntropyOf(call.seed, call.output.dims, ClassAxis(call.output.dims));
  const FloatsIn scores(call.contents, call.output.type);
  const FloatsOut gradient(call.gradient, call.output.type);
  const int64_t parts = std::min(entropy.positions(), scalar::kLossParts);
  if (entropy.inner == 1) {
    StartCrossEntropyOfRows(device, entropy, scores, gradient, parts, part_sums);
  } else {
    StartCrossEntropyOfImages(device, entropy, scores, gradient, parts, part_sums);
  }
  return entropy.positions();
}

// `scratch` has kStepLossScratch bytes of device memory.
double RunStepLoss(Device& device, const LossCall& call, void* scratch) {
  auto* const part_sums = static_cast<double*>(scratch);
  const int64_t terms = StartLoss(device, call, part_sums);
  std::vector<double> parts(static_cast<size_t>(std::min(terms, scalar::kLossParts)));
  device.Download(parts.data(), part_sums, static_cast<int64_t>(parts.size() * sizeof(double)));
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// The alignment of cudaMalloc, and the strictest that any library requires.
constexpr int64_t kAlignment = 256;

struct AddProduct {
  float scale;
  CKPLAN_DEVICE float operator()(float into, float from) const { return into + scale * from; }
};

// A partial digest: the sum of a hash of each word and its index. The sum doesn't depend on the
// order of the words.
struct Digest {
  uint64_t hash;
  int64_t first_poison;  // kNone if there is no poison.
};
constexpr int64_t kNone = int64_t{1} << 62;
constexpr int64_t kNan = int64_t{1} << 61;  // A NaN other than the poison.

CKPLAN_DEVICE inline uint64_t HashOf(uint64_t word, int64_t place) {
  uint64_t z = word + (static_cast<uint64_t>(place) + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;  // The mixing function of splitmix64.
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

struct MergeDigests {
  CKPLAN_DEVICE Digest operator()(const Digest& a, const Digest& b) const {
    return {a.hash + b.hash, a.first_poison < b.first_poison ? a.first_poison : b.first_poison};
  }
};

CKPLAN_DEVICE inline int64_t DigestFloat(uint32_t bits, int64_t place) {
  if ((bits & 0x7FFFFFFFU) <= 0x7F800000U) return kNone;
  return bits == kPoison ? place : kNan;
}

CKPLAN_DEVICE inline int64_t DigestHalf(uint32_t half, int64_t place) {
  if ((half & 0x7FFFU) <= 0x7F80U) return kNone;
  return half == kBFloat16Poison ? place : kNan;
}

// `place` is the word's index in the buffer.
CKPLAN_DEVICE inline int64_t DigestWord(uint32_t word, int64_t place, ElementType type) {
  if (type == ElementType::kFloat32) return DigestFloat(word, place);
  if (type != ElementType::kBFloat16) return kNone;
  return Min(DigestHalf(word & 0xFFFFU, 2 * place), DigestHalf(word >> 16, 2 * place + 1));
}

// Returns what an error of Unsupported says, without the operator's name.
std::string ReasonOf(const Error& error) {
  const size_t colon = error.message.rfind("\": ");
  return colon == std::string::npos ? error.message : error.message.substr(colon + 3);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::unique_ptr<Device> device, std::unique_ptr<Backend> host)
      : device_(std::move(device)), host_(*device_, std::move(host)) {}
  ~CudaBackend() override {
    device_->Release(scratch_);
    device_->Release(loss_scratch_);
  }

  std::string_view name() const override { return "cuda"; }
  std::string Describe() const override { return device_->Describe(); }
  int64_t alignment() const override { return kAlignment; }

  bool StoresBFloat16() const override { return true; }
  bool IsAsynchronous() const override { return true; }
  std::unique_ptr<DeviceClock> MakeClock() override { return device_->MakeClock(); }
  std::unique_ptr<CopyLink> MakeCopyLink(const CopyLinkOptions& options) override {
    return device_->MakeCopyLink(options);
  }
  std::vector<OpSupport> Operators() const override { return cuda::Operators(); }

  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) override {
    const OpRow* row = Table().Find(spec.type);
    if (row == nullptr) return Unsupported(spec, "it has no kernel for this operator");
    CKPLAN_RETURN_IF_ERROR(ValidateOp(spec));
    if (row->prepare == nullptr) return host_.Prepare(spec, "it has no kernel for the GPU");
    auto op = row->prepare(spec, *device_);
    if (op.ok() || op.error().code != ErrorCode::kUnsupported) return op;
    return host_.Prepare(spec, ReasonOf(op.error()));
  }

  ElementOrders OrdersOf(const OpSpec& spec) const override { return cuda::OrdersOf(spec); }
  std::unique_ptr<RecordedWork> Record(const std::function<void()>& give) override {
    return device_->Record(give);
  }

  size_t FusibleLength(std::span<const ChainedOp> chain) const override {
    return cuda::FusibleLength(chain);
  }
  std::unique_ptr<FusedForward> Fuse(std::span<const ChainedOp> chain) override {
    return MakeFused(chain, *device_);
  }

  int64_t AvailableBytes() const override { return device_->AvailableBytes(); }
  Result<void*> Allocate(int64_t bytes) override { return device_->Allocate(bytes); }
  void Release(void* memory) override { device_->Release(memory); }
  Result<void*> AllocatePooled(int64_t bytes) override { return device_->AllocatePooled(bytes); }
  void ReleasePooled(void* memory) override { device_->ReleasePooled(memory); }
  void ResetPooledPeak() override { device_->ResetPooledPeak(); }
  std::optional<int64_t> PooledPeak() override { return device_->PooledPeak(); }
  std::vector<MemoryUse> Overheads() const override { return device_->Overheads(); }
  void Upload(void* to_device, const void* from_host, int64_t bytes) override {
    device_->Upload(to_device, from_host, bytes);
  }
  void Download(void* to_host, const void* from_device, int64_t bytes) override {
    device_->Download(to_host, from_device, bytes);
  }
  void Copy(void* to, const void* from, int64_t bytes) override { device_->Copy(to, from, bytes); }
  void Zero(void* memory, int64_t bytes) override { device_->Zero(memory, bytes); }
  void Synchronize() override { device_->Synchronize(); }

  void Poison(void* memory, int64_t bytes) override {
    auto* words = static_cast<uint32_t*>(memory);
    auto* rest = static_cast<unsigned char*>(memory);
    ForEach(*device_, CeilDiv(bytes, 4), [=] CKPLAN_KERNEL(int64_t i) {
      if (4 * i + 4 <= bytes) {
        words[i] = kPoison;
      } else {
        for (int64_t k = 4 * i; k < bytes; ++k) rest[k] = 0xFF;
      }
    });
  }

  void AddScaled(void* into, const void* from, ElementType type, float scale,
                 int64_t count) override {
    Map(*device_, count, FloatsOut(into, type), AddProduct{scale}, FloatsIn(into, type),
        FloatsIn(from, type));
  }

  std::optional<double> RunLoss(const LossCall& call) override {
    if (loss_scratch_ == nullptr) {
      const Result<void*> memory = device_->Allocate(kStepLossScratch);
      if (!memory.ok()) FailOutOfMemory("the loss of a step");
      loss_scratch_ = *memory;
    }
    return RunStepLoss(*device_, call, loss_scratch_);
  }

  BufferDigest Inspect(const void* memory, int64_t bytes, ElementType type) override {
    const auto shape = ReduceShape::Of(1, CeilDiv(bytes, 4), false);
    auto* result = static_cast<Digest*>(Scratch(shape.workspace<Digest>()));
    Reduce(
        *device_, shape, Digest{0, kNone},
        [=] CKPLAN_KERNEL(int64_t, int64_t i) {
          uint32_t word = 0;
          if (4 * i + 4 <= bytes) {
            word = static_cast<const uint32_t*>(memory)[i];
          } else {
            for (int64_t k = 4 * i; k < bytes; ++k) {  // A final bfloat16 is the lower half.
              const uint32_t byte = static_cast<const unsigned char*>(memory)[k];
              word |= byte << (8 * (k - 4 * i));
            }
          }
          return Digest{HashOf(word, i), DigestWord(word, i, type)};
        },
        MergeDigests(), [=] CKPLAN_KERNEL(int64_t, const Digest& digest) { *result = digest; },
        result + 1);
    Digest digest{};
    device_->Download(&digest, result, sizeof(digest));
    const int64_t found = digest.first_poison;
    return {digest.hash + static_cast<uint64_t>(bytes), found < kNan ? found : -1, found != kNone};
  }

 private:
  // Memory for a digest and the partial results of its reduction, allocated at first use.
  void* Scratch(int64_t bytes) {
    constexpr int64_t kLargest = 257 * static_cast<int64_t>(sizeof(Digest));
    CKPLAN_CHECK(bytes < kLargest, "a reduction has at most 256 parts");
    if (scratch_ == nullptr) {
      Result<void*> memory = device_->Allocate(kLargest);
      CKPLAN_CHECK(memory.ok(), "a few kilobytes are free beside the arena");
      scratch_ = *memory;
    }
    return scratch_;
  }

  std::unique_ptr<Device> device_;
  HostFallback host_;
  void* scratch_ = nullptr;
  void* loss_scratch_ = nullptr;
};

__global__ void FirstKernel() {}

// Starts a kernel without Launch's checks.
cudaError_t StartFirstKernel(Device& device) {
#ifdef __CUDACC__
  FirstKernel<<<1, 1, 0, StreamOf(device)>>>();
#else
  EnqueueBlocks(device.stream(), 1, 1, false, FirstKernel);
#endif
  return cudaGetLastError();
}

}  // namespace

std::vector<OpSupport> Operators() { return Table().Support(); }

std::unique_ptr<Backend> MakeBackend(std::unique_ptr<Device> device,
                                     std::unique_ptr<Backend> host) {
  return std::make_unique<CudaBackend>(std::move(device), std::move(host));
}

Result<std::unique_ptr<Backend>> OpenBackend(const DeviceOptions& options,
                                             std::unique_ptr<Backend> host) {
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                          OpenCudaDevice(options, OpenCudaLibraries));
  CKPLAN_RETURN_IF_ERROR(CheckFirstKernel(StartFirstKernel(*device)));
  return MakeBackend(std::move(device), std::move(host));
}

}  // namespace ckplan::cuda
