#include "lib/executor/cuda/gpu/cuda_libraries.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/gpu/cublas_gemm.h"
#include "lib/executor/cuda/gpu/cudnn_attention.h"
#include "lib/executor/cuda/gpu/cudnn_convolution.h"
#include "lib/executor/cuda/gpu/shared_library.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

namespace {

constexpr const char* kCannotExecute = "a GPU that is only described cannot execute anything";

// A stand-in for the driver, for machines without one. cuDNN compiles its attention engines when it
// makes a plan, and loads the code with the CUDA driver, which it looks up by name. Code for a GPU
// that is only described never runs, so a stand-in library is enough: it reports no GPU and accepts
// any code (absent_driver_library.cc).

// Loads that library from the program's folder, so that cuDNN finds it under the driver's name.
// Must be called before cuDNN looks for a driver. If the library is missing, nothing happens, and
// cuDNN rejects attention plans with its own reason.
void LoadAbsentDriver() {
  // The loader replaces $ORIGIN with the program's folder.
  dlopen("$ORIGIN/libckplan_absent_driver.so", RTLD_NOW | RTLD_GLOBAL);
}

// Returns the attentions for the convolutions' device. The convolutions must outlive them.
std::unique_ptr<CudnnAttentions> MakeAttentions(const CudnnConvolutions& convolutions,
                                                const DeviceOptions& options) {
  return std::make_unique<CudnnAttentions>(convolutions.api(), convolutions.target(), options);
}

class CudaLibraries final : public Libraries {
 public:
  static Result<std::unique_ptr<CudaLibraries>> Open(const DeviceOptions& options,
                                                     cudaStream_t stream) {
    CKPLAN_ASSIGN_OR_RETURN(const CublasApi cublas, LoadFromFolders(CublasApi::Load));
    CKPLAN_ASSIGN_OR_RETURN(const CudnnApi cudnn, LoadFromFolders(CudnnApi::Load));
    std::unique_ptr<CudaLibraries> libraries(new CudaLibraries);
    CKPLAN_ASSIGN_OR_RETURN(libraries->gemm_, CublasGemm::Create(cublas, options, stream));
    CKPLAN_ASSIGN_OR_RETURN(libraries->convolutions_,
                            CudnnConvolutions::Create(cudnn, options, stream));
    libraries->attentions_ = MakeAttentions(*libraries->convolutions_, options);
    return libraries;
  }

  int64_t GemmWorkspace(const GemmShape&) const override { return gemm_->workspace(); }
  void Gemm(const GemmShape& shape, const void* a, const void* b, void* c,
            void* workspace) override {
    gemm_->Run(shape, a, b, c, workspace);
  }
  Result<std::unique_ptr<Convolution>> PrepareConvolution(const ConvolutionShape& shape,
                                                          ConvPass pass) override {
    return convolutions_->Prepare(shape, pass);
  }
  Result<std::unique_ptr<LibraryAttention>> PrepareAttention(const LibraryAttentionShape& shape,
                                                             AttentionPass pass) override {
    return attentions_->Prepare(shape, pass);
  }

  std::string Describe() const {
    const int cublas = gemm_->version();
    const int64_t cudnn = convolutions_->api().version();
    return fmt::format("cuBLAS {}.{}, cuDNN {}.{}", cublas / 10000, cublas / 100 % 100,
                       cudnn / 10000, cudnn / 100 % 100);
  }

 private:
  CudaLibraries() = default;

  std::unique_ptr<CublasGemm> gemm_;
  std::unique_ptr<CudnnConvolutions> convolutions_;
  std::unique_ptr<CudnnAttentions> attentions_;
};

class DescribedLibraries final : public Libraries {
 public:
  DescribedLibraries(const DeviceOptions& options, std::unique_ptr<CudnnConvolutions> convolutions)
      : gemm_workspace_(CublasGemm::WorkspaceFor(options)),
        convolutions_(std::move(convolutions)),
        attentions_(MakeAttentions(*convolutions_, options)) {}

  int64_t GemmWorkspace(const GemmShape&) const override { return gemm_workspace_; }
  void Gemm(const GemmShape&, const void*, const void*, void*, void*) override {
    CKPLAN_CHECK(false, kCannotExecute);
  }
  Result<std::unique_ptr<Convolution>> PrepareConvolution(const ConvolutionShape& shape,
                                                          ConvPass pass) override {
    return convolutions_->Prepare(shape, pass);
  }
  Result<std::unique_ptr<LibraryAttention>> PrepareAttention(const LibraryAttentionShape& shape,
                                                             AttentionPass pass) override {
    return attentions_->Prepare(shape, pass);
  }

 private:
  int64_t gemm_workspace_;
  std::unique_ptr<CudnnConvolutions> convolutions_;
  std::unique_ptr<CudnnAttentions> attentions_;
};

}  // namespace

Result<OpenedLibraries> OpenCudaLibraries(const DeviceOptions& options, void* stream) {
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<CudaLibraries> libraries,
                          CudaLibraries::Open(options, static_cast<cudaStream_t>(stream)));
  std::string versions = libraries->Describe();
  return OpenedLibraries{std::move(libraries), std::move(versions)};
}

int64_t ProductWorkspaceFor(const DeviceOptions& options) {
  return CublasGemm::WorkspaceFor(options);
}

Result<OpenedLibraries> DescribeCudaLibraries(const DeviceOptions& options,
                                              const std::string& properties_json) {
  LoadAbsentDriver();
  CKPLAN_ASSIGN_OR_RETURN(const CudnnApi cudnn, CudnnApi::Load(LibraryFolders()));
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<CudnnConvolutions> convolutions,
                          CudnnConvolutions::Describe(cudnn, options, properties_json));
  return OpenedLibraries{std::make_unique<DescribedLibraries>(options, std::move(convolutions)),
                         fmt::format("cuDNN {}", cudnn.VersionText())};
}

namespace {

class DescribedDevice final : public Device {
 public:
  DescribedDevice(const DeviceOptions& options, const GpuDescription& gpu, OpenedLibraries opened)
      : Device(options), gpu_(gpu), opened_(std::move(opened)) {}

  std::string Describe() const override {
    return fmt::format("{} (described, compute capability {}.{}), {}{}", gpu_.name,
                       gpu_.compute_capability / 10, gpu_.compute_capability % 10, opened_.versions,
                       DescribeTf32(options()));
  }
  std::vector<MemoryUse> Overheads() const override { return {}; }
  int64_t AvailableBytes() const override { return gpu_.memory_bytes; }

  Result<void*> Allocate(int64_t bytes) override {
    void* memory = std::malloc(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (memory != nullptr) return memory;
    return MakeError(ErrorCode::kInfeasible, fmt::format("no memory is left for {} bytes", bytes));
  }
  void Release(void* memory) override { std::free(memory); }
  Result<void*> AllocatePooled(int64_t bytes) override { return Allocate(bytes); }
  void ReleasePooled(void* memory) override { Release(memory); }
  void ResetPooledPeak() override {}
  std::optional<int64_t> PooledPeak() override { return std::nullopt; }

  void Upload(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Download(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void Zero(void* memory, int64_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, static_cast<size_t>(bytes));
  }
  void Synchronize() override {}

  Libraries& libraries() override { return *opened_.libraries; }
  // Kernels query the stream in which they start.
  void* stream() const override {
    CKPLAN_CHECK(false, kCannotExecute);
    return nullptr;
  }

 private:
  GpuDescription gpu_;
  OpenedLibraries opened_;
};

}  // namespace

// The keys are cuDNN's own, and it requires all of them. Literal values are the same for GPUs of
// compute capability 8.0, 9.0 and 10.0, or don't matter without a device.
std::string PropertiesJson(const GpuDescription& gpu) {
  return fmt::format(
      R"({{"deviceName":"{}","deviceVer":{},"multiProcessorCount":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"l2CacheSize":{},"smClockRateKHz":{},)"
      R"("memClockRateKHz":{},"totalGlobalMem":{},"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,)"
      R"("maxCtasPerSM":32,"regsPerBlock":65536,"maxRegistersPerSM":65536,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,)"
      R"("supportCoopLaunch":1,"isTccDriver":0,"driverVer":13000,"pciDeviceId":0,)"
      R"("cudaDeviceId":0}})",
      gpu.name, gpu.compute_capability * 10, gpu.multiprocessors, gpu.shared_memory_per_block_bytes,
      gpu.l2_cache_bytes, gpu.clock_khz, gpu.memory_clock_khz, gpu.memory_bytes);
}

Result<std::unique_ptr<Device>> OpenDescribedDevice(const DeviceOptions& options,
                                                    const GpuDescription& gpu) {
  CKPLAN_ASSIGN_OR_RETURN(OpenedLibraries opened,
                          DescribeCudaLibraries(options, PropertiesJson(gpu)));
  return std::unique_ptr<Device>(
      std::make_unique<DescribedDevice>(options, gpu, std::move(opened)));
}

}  // namespace ckplan::cuda
