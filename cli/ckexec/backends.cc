#include "cli/ckexec/backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/ckexec/session.h"
#include "cli/common/size_arg.h"
#include "lib/base/text.h"
#include "lib/base/units.h"
#include "lib/executor/backend/backend.h"
#include "lib/problem/cost/cost_model.h"
#ifdef CKPLAN_HAS_CPU
#include "lib/executor/cpu/cpu_backend.h"
#endif
#ifdef CKPLAN_HAS_CUDA
#include "lib/executor/cuda/cuda_backend.h"
#include "lib/executor/cuda/gpu/cuda_libraries.h"
#endif

namespace ckplan {
namespace {

// ---- A backend that offers less memory than the device has, for --memory-limit ----

// Counts allocated bytes and refuses to exceed the limit.
class LimitedBackend final : public ForwardingBackend {
 public:
  LimitedBackend(std::unique_ptr<Backend> backend, Bytes limit)
      : ForwardingBackend(std::move(backend)), limit_(limit) {}

  int64_t AvailableBytes() const override {
    return std::min((limit_ - taken_).count(), ForwardingBackend::AvailableBytes());
  }
  Result<void*> Allocate(int64_t bytes) override {
    CKPLAN_RETURN_IF_ERROR(CheckLimit(bytes));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, ForwardingBackend::Allocate(bytes));
    Count(memory, bytes);
    return memory;
  }
  void Release(void* memory) override {
    Forget(memory);
    ForwardingBackend::Release(memory);
  }
  Result<void*> AllocatePooled(int64_t bytes) override {
    CKPLAN_RETURN_IF_ERROR(CheckLimit(bytes));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, ForwardingBackend::AllocatePooled(bytes));
    Count(memory, bytes);
    return memory;
  }
  void ReleasePooled(void* memory) override {
    Forget(memory);
    ForwardingBackend::ReleasePooled(memory);
  }

 private:
  Result<Done> CheckLimit(int64_t bytes) const {
    if (Bytes(bytes) <= limit_ - taken_) return Done{};
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("--memory-limit {} is too small: {} are in use, and {} more are "
                                 "needed; raise it, or use a smaller batch",
                                 HumanBytes(limit_), HumanBytes(taken_), HumanBytes(Bytes(bytes))));
  }
  void Count(void* memory, int64_t bytes) {
    taken_ += Bytes(bytes);
    sizes_[memory] = Bytes(bytes);
  }
  void Forget(void* memory) {
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    taken_ -= found->second;
    sizes_.erase(found);
  }

  Bytes limit_;
  Bytes taken_;
  std::map<void*, Bytes> sizes_;
};

std::unique_ptr<Backend> LimitMemory(std::unique_ptr<Backend> backend, Bytes limit) {
  return std::make_unique<LimitedBackend>(std::move(backend), limit);
}

// ---- The backends ----

Error WrongBackendError(std::string_view option, std::string_view backend) {
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("{} applies only to the {} backend; add --backend {}, or leave it out", option,
                  backend, backend));
}

// ---- CPU ----------------------------------------------------------------------------------------

#ifdef CKPLAN_HAS_CPU

constexpr const char* kDefault = "cpu";
constexpr const char* kOther = "cuda";
constexpr std::string_view kUseCpuHint = "; --backend cpu needs no GPU";

std::vector<OpSupport> CpuOperators() { return cpu::MakeCpuBackend(1)->Operators(); }

Result<std::unique_ptr<Backend>> MakeCpu(const ExecOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(const int threads, CountOf(options.threads, "--threads", 0, 1));
  return cpu::MakeCpuBackend(threads);
}

Result<Done> CheckBuiltWithCpu() { return Done{}; }

#else

constexpr const char* kDefault = "cuda";
constexpr const char* kOther = "cpu";
constexpr std::string_view kUseCpuHint;

std::vector<OpSupport> CpuOperators() { return {}; }

Result<Done> CheckBuiltWithCpu() {
  return MakeError(ErrorCode::kUnsupported,
                   "this ckexec was built without the cpu backend; use --backend cuda");
}

Result<std::unique_ptr<Backend>> MakeCpu(const ExecOptions&) { return CheckBuiltWithCpu().error(); }

#endif

// ---- CUDA ---------------------------------------------------------------------------------------

#ifdef CKPLAN_HAS_CUDA

// Computes what a GPU has no kernels for; null without the CPU backend.
std::unique_ptr<Backend> MakeHost() {
#ifdef CKPLAN_HAS_CPU
  return cpu::MakeCpuBackend(0);
#else
  return nullptr;
#endif
}

constexpr Bytes kMinWorkspace(int64_t{16} << 10);

Result<Done> CheckBuiltWithCuda() { return Done{}; }

std::vector<OpSupport> CudaOperators() { return cuda::Operators(); }

Result<cuda::DeviceOptions> DeviceOptionsOf(const ExecOptions& options) {
  cuda::DeviceOptions device_options;
  const bool allows_all = options.allows_tf32 || options.tf32 == "all";
  device_options.allow_tf32 = allows_all || options.tf32 == "convolutions";
  device_options.allow_tf32_products = allows_all;
  if (options.workspace_limit) {
    CKPLAN_ASSIGN_OR_RETURN(const Bytes limit,
                            ParseSize(*options.workspace_limit, "--workspace-limit"));
    if (limit < kMinWorkspace) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--workspace-limit {}: cuBLAS needs at least 16KiB",
                                   *options.workspace_limit));
    }
    device_options.workspace_limit = limit.count();
  }
  return device_options;
}

Result<std::unique_ptr<Backend>> MakeCuda(const ExecOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(const cuda::DeviceOptions device_options, DeviceOptionsOf(options));
  auto backend = cuda::OpenBackend(device_options, MakeHost());
  if (backend.ok()) return backend;
  Error error = std::move(backend).error();
  if (error.code == ErrorCode::kUnsupported) error.message += kUseCpuHint;
  return error;
}

cuda::GpuDescription DescriptionOf(const Device& device) {
  const CudaProperties& cuda = *device.cuda;
  // The description continues with rates: "NVIDIA H100 SXM5 80 GB, HBM3; FP32 66.9 TFLOPS".
  return {device.description.substr(0, device.description.find(',')),
          device.memory.count(),
          cuda.compute_capability,
          cuda.multiprocessors,
          cuda.shared_memory_per_block.count(),
          cuda.l2_cache.count(),
          cuda.clock_khz,
          cuda.memory_clock_khz};
}

Result<DescribedBackend> MakeDescribedCuda(const ExecOptions& options, const Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const cuda::DeviceOptions device_options, DeviceOptionsOf(options));
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<cuda::Device> gpu,
                          cuda::OpenDescribedDevice(device_options, DescriptionOf(device)));
  return DescribedBackend{device.name, cuda::MakeBackend(std::move(gpu), MakeHost()),
                          cuda::ProductWorkspaceFor(device_options)};
}

#else

Result<Done> CheckBuiltWithCuda() {
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format("the cuda backend cannot run here: this ckexec was built without it; "
                  "rebuild it with the CUDA toolkit{}",
                  kUseCpuHint));
}

std::vector<OpSupport> CudaOperators() { return {}; }

Result<std::unique_ptr<Backend>> MakeCuda(const ExecOptions&) {
  return CheckBuiltWithCuda().error();
}

Result<DescribedBackend> MakeDescribedCuda(const ExecOptions&, const Device&) {
  return MakeError(ErrorCode::kUnsupported,
                   "--device needs the cuda backend, but this ckexec was built without the CUDA "
                   "toolkit; rebuild it with the toolkit installed");
}

#endif

// --tf32 and --allow-tf32 must agree.
Result<Done> CheckTf32(const ExecOptions& options) {
  if (options.allows_tf32 && options.tf32 == "convolutions") {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--allow-tf32 means --tf32 all, not --tf32 {}; leave one of them out",
                    options.tf32));
  }
  return Done{};
}

}  // namespace

void AddBackendChoice(CommandLine& line, std::string_view what, std::string* backend) {
  line.Choice("--backend", {kDefault, kOther}, fmt::format("{} (default {})", what, kDefault),
              backend);
}

Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options) {
  const bool is_cuda = options.backend == "cuda";
  if (is_cuda && options.threads) return WrongBackendError("--threads", "cpu");
  if (!is_cuda && options.allows_tf32) return WrongBackendError("--allow-tf32", "cuda");
  if (!is_cuda && options.tf32 != "none") return WrongBackendError("--tf32", "cuda");
  CKPLAN_RETURN_IF_ERROR(CheckTf32(options));
  if (!is_cuda && options.workspace_limit) return WrongBackendError("--workspace-limit", "cuda");
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                          is_cuda ? MakeCuda(options) : MakeCpu(options));
  if (!options.memory_limit) return backend;
  CKPLAN_ASSIGN_OR_RETURN(const Bytes limit, ParseSize(*options.memory_limit, "--memory-limit"));
  return LimitMemory(std::move(backend), limit);
}

Result<DescribedBackend> MakeDescribedBackend(const ExecOptions& options) {
  CKPLAN_RETURN_IF_ERROR(CheckTf32(options));
  CKPLAN_ASSIGN_OR_RETURN(const Device device, FindCudaDevice(*options.device));
  return MakeDescribedCuda(options, device);
}

Result<std::vector<OpSupport>> OperatorsOf(const std::string& backend) {
  if (backend == "cuda") {
    CKPLAN_RETURN_IF_ERROR(CheckBuiltWithCuda());
    return CudaOperators();
  }
  CKPLAN_RETURN_IF_ERROR(CheckBuiltWithCpu());
  return CpuOperators();
}

}  // namespace ckplan
