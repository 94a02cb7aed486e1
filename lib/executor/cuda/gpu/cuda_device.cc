#include "lib/executor/cuda/gpu/cuda_device.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/executor/cuda/cuda_check.h"

namespace ckplan::cuda {

namespace {

// The oldest architecture that kernels are compiled for: compute capability 8.0.
constexpr int kMinMajor = 8;

std::string VersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Error CannotRunError(const std::string& why) {
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("the cuda backend cannot run here: {}", why));
}

// The CUDA versions of the driver and of the toolkit that built this program.
std::string DescribeVersions() {
  int driver = 0;
  int runtime = 0;
  CheckCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  CheckCuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return fmt::format("its driver supports CUDA {}, and this ckexec was built for {}",
                     VersionText(driver), VersionText(runtime));
}

Result<Done> CheckDriver() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return CannotRunError("this machine has no NVIDIA driver; install one");
  }
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver) {
    return CannotRunError(fmt::format("{}; install a newer driver", DescribeVersions()));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && devices == 0)) {
    return CannotRunError(
        "this machine has a driver, but shows no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  if (status != cudaSuccess) return CannotRunError(cudaGetErrorString(status));
  return Done{};
}

// Marks are events in the stream, so nothing waits for them.
class EventClock final : public DeviceClock {
 public:
  explicit EventClock(cudaStream_t stream) : stream_(stream) {}
  ~EventClock() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  size_t Mark() override {
    cudaEvent_t event = nullptr;
    CheckCuda(cudaEventCreate(&event), "cudaEventCreate");
    events_.push_back(event);
    CheckCuda(cudaEventRecord(event, stream_), "cudaEventRecord");
    return events_.size() - 1;
  }
  double SecondsBetween(size_t first, size_t second) override {
    float milliseconds = 0;
    CheckCuda(cudaEventElapsedTime(&milliseconds, events_[first], events_[second]),
              "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1000;
  }

 private:
  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
};

class CapturedGraph final : public RecordedWork {
 public:
  CapturedGraph(cudaGraphExec_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  ~CapturedGraph() override {
    (void)cudaStreamSynchronize(stream_);  // It may still be running.
    (void)cudaGraphExecDestroy(graph_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void Start() override { CheckCuda(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
};

// Copies in separate streams: one per direction, or one for both. Host memory is pinned. Each copy
// has an event, which is reused once the copy has been waited for.
class StreamLink final : public CopyLink {
 public:
  StreamLink(cudaStream_t computing, bool is_half_duplex) : computing_(computing) {
    out_ = NewStream();
    in_ = is_half_duplex ? out_ : NewStream();
    begins_ = NewEvent();
  }
  ~StreamLink() override {
    WaitForAll();
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaEventDestroy(begins_);
    cudaStreamDestroy(out_);
    if (in_ != out_) cudaStreamDestroy(in_);
  }

  Result<void*> AllocateHost(int64_t bytes) override {
    void* memory = nullptr;
    bytes = std::max<int64_t>(bytes, 1);
    const cudaError_t status = cudaMallocHost(&memory, static_cast<size_t>(bytes));
    if (status == cudaSuccess) return memory;
    (void)cudaGetLastError();  // Clears the error, which is reported here.
    if (status != cudaErrorMemoryAllocation) CheckCuda(status, "pinning memory of the host");
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("cannot pin {} bytes of host memory; plan with a smaller --host-memory",
                    bytes));
  }
  void ReleaseHost(void* memory) override {
    WaitForAll();
    if (memory != nullptr) CheckRelease(cudaFreeHost(memory), "cudaFreeHost");
  }

  size_t CopyOut(void* host, const void* device, int64_t bytes) override {
    return Copy(host, device, bytes, cudaMemcpyDeviceToHost, out_);
  }
  size_t CopyIn(void* device, const void* host, int64_t bytes) override {
    return Copy(device, host, bytes, cudaMemcpyHostToDevice, in_);
  }
  void FillHost(void* host, int byte, int64_t bytes) override {
    FollowComputing(out_);
    if (bytes == 0) return;
    CheckCuda(cudaMemsetAsync(host, byte, static_cast<size_t>(bytes), out_), "cudaMemsetAsync");
  }
  void Wait(size_t copy) override {
    CheckCuda(cudaStreamWaitEvent(computing_, events_[copy], 0), "cudaStreamWaitEvent");
    free_.push_back(copy);
  }

 private:
  static cudaStream_t NewStream() {
    cudaStream_t stream = nullptr;
    CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    return stream;
  }
  static cudaEvent_t NewEvent() {
    cudaEvent_t event = nullptr;
    CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    return event;
  }

  // Makes the stream wait for all work submitted to the compute stream.
  void FollowComputing(cudaStream_t stream) {
    CheckCuda(cudaEventRecord(begins_, computing_), "cudaEventRecord");
    CheckCuda(cudaStreamWaitEvent(stream, begins_, 0), "cudaStreamWaitEvent");
  }

  size_t Copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    FollowComputing(stream);
    if (bytes > 0) {
      CheckCuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream),
                "cudaMemcpyAsync");
    }
    if (free_.empty()) {
      free_.push_back(events_.size());
      events_.push_back(NewEvent());
    }
    const size_t copy = free_.back();
    free_.pop_back();
    CheckCuda(cudaEventRecord(events_[copy], stream), "cudaEventRecord");
    return copy;
  }

  void WaitForAll() {
    for (const cudaStream_t stream : {computing_, out_, in_}) {
      CheckRelease(cudaStreamSynchronize(stream), "copying to the host and back");
    }
  }

  cudaStream_t computing_;
  cudaStream_t out_ = nullptr;
  cudaStream_t in_ = nullptr;
  cudaEvent_t begins_ = nullptr;
  std::vector<cudaEvent_t> events_;  // By copy number.
  std::vector<size_t> free_;         // Numbers of copies that have been waited for.
};

class CudaDevice final : public Device {
 public:
  // Measures the memory taken by the context, then by the library handles.
  static Result<std::unique_ptr<CudaDevice>> Open(const DeviceOptions& options,
                                                  const OpenLibraries& open_libraries,
                                                  const cudaDeviceProp& properties) {
    std::unique_ptr<CudaDevice> device(new CudaDevice(options, properties));
    CheckCuda(cudaStreamCreateWithFlags(&device->stream_, cudaStreamNonBlocking),
              "cudaStreamCreate");
    device->FindPool();
    const int64_t before = device->AvailableBytes();
    CKPLAN_ASSIGN_OR_RETURN(device->opened_, open_libraries(options, device->stream_));
    device->overheads_ = {{"context, and other programs", device->Total() - before},
                          {"cuBLAS and cuDNN", before - device->AvailableBytes()}};
    return device;
  }

  ~CudaDevice() override {
    opened_.libraries.reset();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  std::string Describe() const override {
    int runtime = 0;
    CheckCuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return fmt::format("{} (compute capability {}.{}), CUDA {}, {}{}", properties_.name,
                       properties_.major, properties_.minor, VersionText(runtime), opened_.versions,
                       DescribeTf32(options()));
  }
  std::vector<MemoryUse> Overheads() const override { return overheads_; }

  int64_t AvailableBytes() const override {
    size_t available = 0;
    size_t total = 0;
    CheckCuda(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return static_cast<int64_t>(available);
  }

  Result<void*> Allocate(int64_t bytes) override {
    void* memory = nullptr;
    bytes = std::max<int64_t>(bytes, 1);  // Empty buffers also need an address.
    const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
    return CheckAllocation(status, memory, bytes);
  }
  void Release(void* memory) override {
    // A running kernel may still use it.
    CheckRelease(cudaStreamSynchronize(stream_), "running the kernels");
    CheckRelease(cudaFree(memory), "cudaFree");
  }

  Result<void*> AllocatePooled(int64_t bytes) override {
    if (pool_ == nullptr) return Allocate(bytes);
    void* memory = nullptr;
    bytes = std::max<int64_t>(bytes, 1);  // Empty buffers also need an address.
    const cudaError_t status = cudaMallocAsync(&memory, static_cast<size_t>(bytes), stream_);
    return CheckAllocation(status, memory, bytes);
  }
  void ReleasePooled(void* memory) override {
    if (pool_ == nullptr) return Release(memory);
    if (memory != nullptr) CheckRelease(cudaFreeAsync(memory, stream_), "cudaFreeAsync");
  }
  void ResetPooledPeak() override {
    if (pool_ == nullptr) return;
    Synchronize();
    uint64_t zero = 0;  // The only value allowed: resets the peak to the current use.
    CheckCuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &zero),
              "cudaMemPoolSetAttribute");
  }
  std::optional<int64_t> PooledPeak() override {
    if (pool_ == nullptr) return std::nullopt;
    Synchronize();
    uint64_t bytes = 0;
    CheckCuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &bytes),
              "cudaMemPoolGetAttribute");
    return static_cast<int64_t>(bytes);
  }

  void Upload(void* to, const void* from, int64_t bytes) override {
    Move(to, from, bytes, cudaMemcpyHostToDevice);
    Synchronize();
  }
  void Download(void* to, const void* from, int64_t bytes) override {
    Move(to, from, bytes, cudaMemcpyDeviceToHost);
    Synchronize();
  }
  void Copy(void* to, const void* from, int64_t bytes) override {
    Move(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  void Zero(void* memory, int64_t bytes) override {
    if (bytes == 0) return;
    CheckCuda(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), stream_), "cudaMemsetAsync");
  }
  void Synchronize() override { CheckCuda(cudaStreamSynchronize(stream_), "running the kernels"); }

  std::unique_ptr<DeviceClock> MakeClock() override {
    return std::make_unique<EventClock>(stream_);
  }

  std::unique_ptr<CopyLink> MakeCopyLink(const CopyLinkOptions& options) override {
    return std::make_unique<StreamLink>(stream_, options.is_half_duplex);
  }

  Libraries& libraries() override { return *opened_.libraries; }
  void* stream() const override { return stream_; }

  std::unique_ptr<RecordedWork> Record(const std::function<void()>& give) override {
    CheckCuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
              "cudaStreamBeginCapture");
    give();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&ready, graph, 0);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    if (status == cudaSuccess) return std::make_unique<CapturedGraph>(ready, stream_);
    (void)cudaGetLastError();  // Clears the error: the caller starts the work itself.
    return nullptr;
  }

 private:
  CudaDevice(const DeviceOptions& options, const cudaDeviceProp& properties)
      : Device(options), properties_(properties) {}

  // Some virtual GPUs and drivers have no pools.
  void FindPool() {
    int has_pools = 0;
    CheckCuda(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, 0),
              "cudaDeviceGetAttribute");
    if (has_pools == 0) return;
    CheckCuda(cudaDeviceGetDefaultMemPool(&pool_, 0), "cudaDeviceGetDefaultMemPool");
  }

  int64_t Total() const { return static_cast<int64_t>(properties_.totalGlobalMem); }

  Result<void*> CheckAllocation(cudaError_t status, void* memory, int64_t bytes) const {
    if (status == cudaSuccess) return memory;
    (void)cudaGetLastError();  // Clears the error, which is reported here.
    if (status != cudaErrorMemoryAllocation) CheckCuda(status, "taking memory");
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("cannot allocate {} bytes on the GPU; {} of {} are free", bytes,
                                 AvailableBytes(), Total()));
  }

  void Move(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return;
    CheckCuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream_),
              "cudaMemcpyAsync");
  }

  cudaDeviceProp properties_;
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;  // Null if the driver has none.
  std::vector<MemoryUse> overheads_;
  OpenedLibraries opened_;
};

}  // namespace

Result<Done> CheckFirstKernel(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return Done{};
    case cudaErrorUnsupportedPtxVersion:
      return CannotRunError(
          fmt::format("{}, whose PTX that driver cannot translate; install a driver that supports "
                      "this CUDA version (see nvidia-smi), or a ckexec with code for this GPU",
                      DescribeVersions()));
    case cudaErrorNoKernelImageForDevice:
      return CannotRunError("this ckexec has neither code nor PTX for its GPU; build it with PTX");
    case cudaErrorJitCompilerNotFound:
      return CannotRunError(
          "its driver lacks libnvidia-ptxjitcompiler.so.1, which translates PTX; install the "
          "complete driver, or a ckexec with code for this GPU");
    case cudaErrorMemoryAllocation:
      FailOutOfMemory("starting a kernel");
    default:
      return CannotRunError(fmt::format("the first kernel fails: {}", cudaGetErrorString(status)));
  }
}

Result<std::unique_ptr<Device>> OpenCudaDevice(const DeviceOptions& options,
                                               const OpenLibraries& open_libraries) {
  CKPLAN_RETURN_IF_ERROR(CheckDriver());
  cudaDeviceProp properties{};
  CheckCuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  if (properties.major < kMinMajor) {
    return CannotRunError(
        fmt::format("its GPU, {}, has compute capability {}.{}, but the kernels need {}.0 or above",
                    properties.name, properties.major, properties.minor, kMinMajor));
  }
  if (const cudaError_t status = cudaSetDevice(0); status != cudaSuccess) {
    return CannotRunError(fmt::format("{}: {}", properties.name, cudaGetErrorString(status)));
  }
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                          CudaDevice::Open(options, open_libraries, properties));
  return device;
}

}  // namespace ckplan::cuda
