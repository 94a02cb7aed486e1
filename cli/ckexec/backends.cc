#include "cli/ckexec/backends.h"

#include <fmt/format.h>

#include <utility>

#include "cli/ckexec/limited_backend.h"
#include "cli/ckexec/session.h"
#include "cli/common/size_arg.h"
#ifdef CKPLAN_HAS_CPU
#include "lib/cpu/cpu_backend.h"
#endif
#ifdef CKPLAN_HAS_CUDA
#include "lib/cuda/cuda_backend.h"
#include "lib/cuda/gpu/cuda_device.h"
#include "lib/cuda/gpu/cuda_libraries.h"
#endif

namespace ckplan {
namespace {

Error OptionOf(std::string_view option, std::string_view backend) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{} is of the {} backend alone; add --backend {}, or leave it out",
                               option, backend, backend));
}

// ---- CPU ----------------------------------------------------------------------------------------

#ifdef CKPLAN_HAS_CPU

constexpr const char* kDefault = "cpu";
constexpr const char* kOther = "cuda";
constexpr std::string_view kElsewhere = "; --backend cpu needs none of this";

std::vector<OpSupport> CpuOperators() { return cpu::MakeCpuBackend(1)->Operators(); }

Result<std::unique_ptr<Backend>> MakeCpu(const ExecOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(const int threads, CountOf(options.threads, "--threads", 0, 1));
  return cpu::MakeCpuBackend(threads);
}

Result<Done> CheckBuiltWithCpu() { return Done{}; }

#else

constexpr const char* kDefault = "cuda";
constexpr const char* kOther = "cpu";
constexpr std::string_view kElsewhere;

std::vector<OpSupport> CpuOperators() { return {}; }

Result<Done> CheckBuiltWithCpu() {
  return MakeError(ErrorCode::kUnsupported,
                   "this ckexec was built without the cpu backend, as programs for other machines "
                   "are; use --backend cuda");
}

Result<std::unique_ptr<Backend>> MakeCpu(const ExecOptions&) { return CheckBuiltWithCpu().error(); }

#endif

// ---- CUDA ---------------------------------------------------------------------------------------

#ifdef CKPLAN_HAS_CUDA

constexpr Bytes kMinWorkspace(int64_t{16} << 10);

Result<Done> CheckBuiltWithCuda() { return Done{}; }

std::vector<OpSupport> CudaOperators() { return cuda::Operators(); }

Result<std::unique_ptr<Backend>> MakeCuda(const ExecOptions& options) {
  cuda::DeviceOptions device_options;
  device_options.allow_tf32 = options.allows_tf32;
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
  auto device = cuda::OpenCudaDevice(device_options, cuda::OpenCudaLibraries);
  if (device.ok()) return cuda::MakeBackend(*std::move(device));
  Error error = std::move(device).error();
  if (error.code == ErrorCode::kUnsupported) error.message += kElsewhere;
  return error;
}

#else

Result<Done> CheckBuiltWithCuda() {
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("the cuda backend cannot run here: this ckexec was built without "
                               "it, for want of a CUDA toolkit{}",
                               kElsewhere));
}

std::vector<OpSupport> CudaOperators() { return {}; }

Result<std::unique_ptr<Backend>> MakeCuda(const ExecOptions&) {
  return CheckBuiltWithCuda().error();
}

#endif

}  // namespace

void AddBackendChoice(CommandLine& line, std::string_view what, std::string* backend) {
  line.Choice("--backend", {kDefault, kOther}, fmt::format("{} (default {})", what, kDefault),
              backend);
}

Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options) {
  const bool is_cuda = options.backend == "cuda";
  if (is_cuda && options.threads) return OptionOf("--threads", "cpu");
  if (!is_cuda && options.allows_tf32) return OptionOf("--allow-tf32", "cuda");
  if (!is_cuda && options.workspace_limit) return OptionOf("--workspace-limit", "cuda");
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                          is_cuda ? MakeCuda(options) : MakeCpu(options));
  if (!options.memory_limit) return backend;
  CKPLAN_ASSIGN_OR_RETURN(const Bytes limit, ParseSize(*options.memory_limit, "--memory-limit"));
  return LimitMemory(std::move(backend), limit);
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
