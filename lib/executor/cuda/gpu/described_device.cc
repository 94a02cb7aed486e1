#include "lib/executor/cuda/gpu/described_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/gpu/cuda_libraries.h"

namespace ckplan::cuda {

namespace {

constexpr const char* kRunsNothing = "a device that is only described runs nothing";

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
  // Kernels ask for the stream in which they start.
  void* stream() const override {
    CKPLAN_CHECK(false, kRunsNothing);
    return nullptr;
  }

 private:
  GpuDescription gpu_;
  OpenedLibraries opened_;
};

}  // namespace

// The keys are cuDNN's own, which asks for all of them. Values that are written out here are the
// same for GPUs of compute capability 8.0, 9.0 and 10.0, or do not matter without a device.
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
