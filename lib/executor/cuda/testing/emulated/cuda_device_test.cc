// Runs the code for a real GPU over an emulated CUDA runtime.
#include "lib/executor/cuda/gpu/cuda_device.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/executor/cuda/cuda_check.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {
namespace {

constexpr int64_t kTotal = int64_t{1} << 20;
constexpr int64_t kContext = 1000;
constexpr int64_t kLibraryBytes = 5000;

// Returns a small GPU that does its work only when the stream is synchronized.
EmulatedMachine SmallMachine() {
  EmulatedMachine machine;
  machine.total_bytes = kTotal;
  machine.context_bytes = kContext;
  machine.defers_work = true;
  return machine;
}

// Libraries that take memory of the GPU, as cuBLAS and cuDNN do, but multiply nothing.
class NoLibraries final : public UnusedLibraries {
 public:
  explicit NoLibraries(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {
    CheckCuda(cudaMalloc(&memory_, kLibraryBytes), "cudaMalloc");
  }
  ~NoLibraries() override {
    CHECK(cudaStreamSynchronize(stream_) == cudaSuccess);  // The stream outlives its libraries.
    CHECK(cudaFree(memory_) == cudaSuccess);
  }

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

Result<OpenedLibraries> OpenNoLibraries(const DeviceOptions&, void* stream) {
  return OpenedLibraries{std::make_unique<NoLibraries>(stream), "no libraries"};
}

std::unique_ptr<Device> OpenOn(const EmulatedMachine& machine) {
  StartEmulatedRuntime(machine);
  Result<std::unique_ptr<Device>> device = OpenCudaDevice({}, OpenNoLibraries);
  REQUIRE(device.ok());
  return std::move(device).value();
}

void* Take(Result<void*> memory) {
  REQUIRE(memory.ok());
  REQUIRE(*memory != nullptr);
  return *memory;
}

std::vector<int> Counted(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

TEST_CASE("cuda device: memory and links are released while an error is on its way") {
  EmulatedMachine machine = SmallMachine();
  machine.faults.insert("no memory for code");  // Kernels' code is loaded late.
  StartEmulatedRuntime(machine);
  const auto open_none = [](const DeviceOptions&, void*) -> Result<OpenedLibraries> {
    return OpenedLibraries{nullptr, "no libraries"};
  };
  const auto run = [&] {
    const auto device = OpenCudaDevice({}, open_none);
    REQUIRE(device.ok());
    const std::unique_ptr<void, std::function<void(void*)>> memory(
        Take((*device)->Allocate(4)), [&](void* taken) { (*device)->Release(taken); });
    const auto link = (*device)->MakeCopyLink({});
    (*device)->Synchronize();
  };
  CHECK_THROWS_AS(run(), OutOfMemory);
}

TEST_CASE("cuda device: recorded work is done when it is started, as often as that is") {
  const auto device = OpenOn(SmallMachine());
  void* const from = Take(device->Allocate(4));
  void* const to = Take(device->Allocate(4));
  const auto count = [&](int number) { device->Upload(from, &number, 4); };
  const auto found = [&] {
    int number = 0;
    device->Download(&number, to, 4);
    return number;
  };
  device->Zero(to, 4);
  count(5);
  {
    const auto recorded = device->Record([&] { device->Copy(to, from, 4); });
    REQUIRE(recorded != nullptr);
    CHECK(found() == 0);
    recorded->Start();
    CHECK(found() == 5);
    count(6);
    CHECK(found() == 5);
    recorded->Start();
    recorded->Start();
    CHECK(found() == 6);
    CHECK(UseOfEmulatedRuntime().objects == 1);
    recorded->Start();
  }
  CHECK(UseOfEmulatedRuntime().objects == 0);
  device->Release(from);
  device->Release(to);
}

TEST_CASE("cuda device: nothing is recorded where the driver refuses") {
  EmulatedMachine refusing = SmallMachine();
  refusing.failures["cudaGraphInstantiate"] = cudaErrorStreamCaptureUnsupported;
  const auto other = OpenOn(refusing);
  void* const memory = Take(other->Allocate(4));
  CHECK(other->Record([&] { other->Zero(memory, 4); }) == nullptr);
  CHECK(UseOfEmulatedRuntime().objects == 0);
  CHECK(cudaGetLastError() == cudaSuccess);
  other->Release(memory);
}

TEST_CASE("cuda device: uploaded, copied and zeroed bytes can be read back") {
  const auto device = OpenOn(SmallMachine());
  const std::vector<int> numbers = Counted(100);
  const int64_t bytes = 400;
  for (const bool is_pooled : {false, true}) {
    CAPTURE(is_pooled);
    const auto take = [&] {
      return Take(is_pooled ? device->AllocatePooled(bytes) : device->Allocate(bytes));
    };
    void* const first = take();
    void* const second = take();
    CHECK(first != second);
    device->Upload(first, numbers.data(), bytes);
    device->Copy(second, first, bytes);
    device->Zero(first, bytes / 2);
    CHECK(UseOfEmulatedRuntime().queued == 2);
    std::vector<int> result(100);
    device->Download(result.data(), second, bytes);
    CHECK(result == numbers);
    device->Download(result.data(), first, bytes);
    std::vector<int> half = numbers;
    std::fill_n(half.begin(), 50, 0);
    CHECK(result == half);
    for (void* memory : {first, second}) {
      is_pooled ? device->ReleasePooled(memory) : device->Release(memory);
    }
  }
}

TEST_CASE("cuda device: an empty buffer has an address, and copying it moves nothing") {
  const auto device = OpenOn(SmallMachine());
  void* const one = Take(device->Allocate(0));
  void* const other = Take(device->AllocatePooled(0));
  CHECK(one != other);
  device->Upload(one, nullptr, 0);
  device->Copy(one, other, 0);
  device->Zero(one, 0);
  device->Download(nullptr, other, 0);
  CHECK(UseOfEmulatedRuntime().queued == 0);
  device->Release(one);
  device->ReleasePooled(other);
  device->Release(nullptr);
  device->ReleasePooled(nullptr);
}

TEST_CASE("cuda device: the peak of the pool is counted from the last reset") {
  const auto device = OpenOn(SmallMachine());
  void* const lasting = Take(device->AllocatePooled(1000));
  device->ReleasePooled(Take(device->AllocatePooled(5000)));
  CHECK(device->PooledPeak() == 6000);
  device->ResetPooledPeak();
  CHECK(device->PooledPeak() == 1000);
  device->ReleasePooled(Take(device->AllocatePooled(200)));
  device->ReleasePooled(Take(device->AllocatePooled(300)));
  device->Release(Take(device->Allocate(7000)));  // This memory is not part of the pool.
  CHECK(device->PooledPeak() == 1300);
  // A driver may count what is freed in a stream when the work before it is done.
  device->ReleasePooled(lasting);
  CHECK(UseOfEmulatedRuntime().queued == 1);
  CHECK(device->PooledPeak() == 1300);
  CHECK(UseOfEmulatedRuntime().queued == 0);
  device->ReleasePooled(Take(device->AllocatePooled(100)));
  device->ResetPooledPeak();
  CHECK(UseOfEmulatedRuntime().queued == 0);
}

TEST_CASE(
    "cuda device: an allocation beyond the memory is refused with the sizes, and leaves no error") {
  const auto device = OpenOn(SmallMachine());
  const int64_t free_bytes = kTotal - kContext - kLibraryBytes;
  CHECK(device->AvailableBytes() == free_bytes);
  for (const bool is_pooled : {false, true}) {
    CAPTURE(is_pooled);
    const int64_t bytes = free_bytes + 1;
    const auto refused = is_pooled ? device->AllocatePooled(bytes) : device->Allocate(bytes);
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == ErrorCode::kInfeasible);
    CHECK(refused.error().message ==
          "cannot allocate 1042577 bytes on the GPU; 1042576 of 1048576 are free");
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  device->Release(Take(device->Allocate(free_bytes)));
}

TEST_CASE("cuda device: memory is released after the work that was queued earlier") {
  const auto device = OpenOn(SmallMachine());
  const std::vector<int> numbers = Counted(10);
  void* const from = Take(device->Allocate(40));
  void* const pooled = Take(device->AllocatePooled(40));
  void* const to = Take(device->Allocate(40));
  device->Upload(from, numbers.data(), 40);
  device->Copy(pooled, from, 40);
  device->Copy(to, pooled, 40);
  const int64_t allocations = UseOfEmulatedRuntime().allocations;
  device->ReleasePooled(pooled);
  CHECK(FindEmulatedRange(pooled).bytes == 40);
  CHECK(UseOfEmulatedRuntime().allocations == allocations - 1);
  device->Release(from);
  CHECK(UseOfEmulatedRuntime().queued == 0);
  CHECK(FindEmulatedRange(pooled).bytes == 0);
  std::vector<int> result(10);
  device->Download(result.data(), to, 40);
  CHECK(result == numbers);
  device->Release(to);
}

TEST_CASE("cuda device: its own overheads are measured, and released when it is closed") {
  auto device = OpenOn(SmallMachine());
  const std::vector<MemoryUse> overheads = device->Overheads();
  REQUIRE(overheads.size() == 2);
  CHECK(overheads[0].what == "context, and other programs");
  CHECK(overheads[0].bytes == kContext);
  CHECK(overheads[1].what == "cuBLAS and cuDNN");
  CHECK(overheads[1].bytes == kLibraryBytes);
  CHECK(device->Describe() == "an emulated GPU (compute capability 9.0), CUDA 13.0, no libraries");
  CHECK(UseOfEmulatedRuntime().streams == 1);
  device.reset();
  CHECK(UseOfEmulatedRuntime().streams == 0);
  CHECK(UseOfEmulatedRuntime().allocations == 0);
}

TEST_CASE("cuda device: TF32 is described if it is allowed") {
  StartEmulatedRuntime(SmallMachine());
  const auto describe = [](const DeviceOptions& options) {
    const auto device = OpenCudaDevice(options, OpenNoLibraries);
    REQUIRE(device.ok());
    return (*device)->Describe();
  };
  const std::string plain = "an emulated GPU (compute capability 9.0), CUDA 13.0, no libraries";
  CHECK(describe({}) == plain);
  CHECK(describe({.allow_tf32 = true}) == plain + ", TF32 in convolutions");
  CHECK(describe({.allow_tf32 = true, .allow_tf32_products = true}) == plain + ", TF32");
}

std::string RefusalOn(const EmulatedMachine& machine) {
  StartEmulatedRuntime(machine);
  const auto device = OpenCudaDevice({}, OpenNoLibraries);
  REQUIRE(!device.ok());
  CHECK(device.error().code == ErrorCode::kUnsupported);
  CHECK(UseOfEmulatedRuntime().streams == 0);
  const std::string start = "the cuda backend cannot run here: ";
  REQUIRE(device.error().message.substr(0, start.size()) == start);
  return device.error().message.substr(start.size());
}

std::string RefusalWhere(const std::string& call, cudaError_t failure) {
  EmulatedMachine machine = SmallMachine();
  machine.failures[call] = failure;
  machine.gpus = call == "cudaGetDeviceCount" ? 0 : 1;
  return RefusalOn(machine);
}

TEST_CASE("cuda device: a machine that cannot run it is refused with the reason") {
  EmulatedMachine machine = SmallMachine();
  machine.driver_version = 0;
  CHECK(RefusalOn(machine) == "this machine has no NVIDIA driver; install one");
  CHECK(RefusalWhere("cudaDriverGetVersion", cudaErrorUnknown) ==
        "this machine has no NVIDIA driver; install one");

  machine.driver_version = 12040;
  CHECK(
      RefusalOn(machine) ==
      "its driver supports CUDA 12.4, and this ckexec was built for 13.0; install a newer driver");

  machine = SmallMachine();
  machine.gpus = 0;
  const std::string no_gpu =
      "this machine has a driver, but shows no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES";
  CHECK(RefusalOn(machine) == no_gpu);
  CHECK(RefusalWhere("cudaGetDeviceCount", cudaSuccess) == no_gpu);
  CHECK(RefusalWhere("cudaGetDeviceCount", cudaErrorUnknown) == "a requested error");

  machine = SmallMachine();
  machine.compute_major = 7;
  CHECK(RefusalOn(machine) ==
        "its GPU, an emulated GPU, has compute capability 7.0, but the kernels need 8.0 or above");
  CHECK(RefusalWhere("cudaSetDevice", cudaErrorDevicesUnavailable) ==
        "an emulated GPU: CUDA-capable device(s) is/are busy or unavailable");
}

TEST_CASE("cuda device: kernels that the driver cannot start are refused with what to install") {
  EmulatedMachine machine = SmallMachine();
  machine.driver_version = 12080;
  machine.runtime_version = 12090;
  StartEmulatedRuntime(machine);
  CHECK(CheckFirstKernel(cudaSuccess).ok());
  const auto refusal = [](cudaError_t status) {
    const Result<Done> judged = CheckFirstKernel(status);
    REQUIRE(!judged.ok());
    CHECK(judged.error().code == ErrorCode::kUnsupported);
    return judged.error().message;
  };
  CHECK(
      refusal(cudaErrorUnsupportedPtxVersion) ==
      "the cuda backend cannot run here: its driver supports CUDA 12.8, and this ckexec was built "
      "for 12.9, whose PTX that driver cannot translate; install a driver that supports this CUDA "
      "version (see nvidia-smi), or a ckexec with code for this GPU");
  CHECK(refusal(cudaErrorNoKernelImageForDevice) ==
        "the cuda backend cannot run here: this ckexec has neither code nor PTX for its GPU; build "
        "it with PTX");
  CHECK(refusal(cudaErrorJitCompilerNotFound).find("libnvidia-ptxjitcompiler.so.1") !=
        std::string::npos);
  CHECK(refusal(cudaErrorUnknown) ==
        "the cuda backend cannot run here: the first kernel fails: a requested error");
  CHECK_THROWS_AS((void)CheckFirstKernel(cudaErrorMemoryAllocation), OutOfMemory);
}

TEST_CASE("cuda device: without pools, separate buffers are ordinary memory and have no peak") {
  EmulatedMachine machine = SmallMachine();
  machine.has_pools = false;
  const auto device = OpenOn(machine);
  void* const memory = Take(device->AllocatePooled(1000));
  device->Zero(memory, 1000);
  device->ResetPooledPeak();
  CHECK(device->PooledPeak() == std::nullopt);
  device->ReleasePooled(memory);
  CHECK(UseOfEmulatedRuntime().bytes == kLibraryBytes);
  CHECK(CallsOfEmulatedRuntime().count("cudaMallocAsync") == 0);
}

TEST_CASE("cuda device: its clock waits for nothing, and measures the work between two marks") {
  const auto device = OpenOn(SmallMachine());
  const auto stream = static_cast<cudaStream_t>(device->stream());
  auto clock = device->MakeClock();
  const auto work = [&](int milliseconds) {
    EnqueueEmulatedWork(stream, [milliseconds] {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    });
  };
  work(30);
  CHECK(clock->Mark() == 0);
  work(2);
  CHECK(clock->Mark() == 1);
  work(30);
  CHECK(UseOfEmulatedRuntime().queued == 5);
  CHECK(CallsOfEmulatedRuntime().count("cudaStreamSynchronize") == 0);
  HostClock whole;
  whole.Mark();
  device->Synchronize();
  whole.Mark();
  CHECK(clock->SecondsBetween(0, 1) >= 0.002);
  CHECK(clock->SecondsBetween(0, 1) <= whole.SecondsBetween(0, 1) - 0.06);
  CHECK(UseOfEmulatedRuntime().events == 2);
  clock.reset();
  CHECK(UseOfEmulatedRuntime().events == 0);
}

TEST_CASE("cuda device: a newer driver of the same CUDA, and an older one, both serve") {
  EmulatedMachine machine = SmallMachine();
  for (const int driver : {13000, 13020, 14000}) {
    machine.driver_version = driver;
    OpenOn(machine);
  }
  machine.runtime_version = 13020;
  machine.driver_version = 13000;
  OpenOn(machine);
}

TEST_CASE("cuda device: an error while opening libraries is returned, and the stream is closed") {
  StartEmulatedRuntime(SmallMachine());
  const auto device =
      OpenCudaDevice({}, [](const DeviceOptions&, void*) -> Result<OpenedLibraries> {
        return MakeError(ErrorCode::kUnsupported, "cuBLAS 12 was not found");
      });
  REQUIRE(!device.ok());
  CHECK(device.error().message == "cuBLAS 12 was not found");
  CHECK(UseOfEmulatedRuntime().streams == 0);
}

TEST_CASE("cuda device: running out of memory within a call is not reported as a bug") {
  EmulatedMachine machine = SmallMachine();
  machine.failures["cudaMemsetAsync"] = cudaErrorMemoryAllocation;
  const auto device = OpenOn(machine);
  void* const memory = Take(device->Allocate(8));
  CHECK_THROWS_AS(device->Zero(memory, 8), OutOfMemory);
  device->Release(memory);
}

// ---- Faults, each of which ends its own process -------------------------------------------------

TEST_CASE("fault: an allocation that fails for another reason" * doctest::skip()) {
  EmulatedMachine machine = SmallMachine();
  machine.failures["cudaMallocAsync"] = cudaErrorIllegalAddress;
  (void)OpenOn(machine)->AllocatePooled(8);
}
TEST_CASE("fault: a copy beyond an allocation" * doctest::skip()) {
  const auto device = OpenOn(SmallMachine());
  void* const memory = Take(device->Allocate(8));
  device->Zero(memory, 9);
}
TEST_CASE("fault: memory that is released twice" * doctest::skip()) {
  const auto device = OpenOn(SmallMachine());
  void* const memory = Take(device->Allocate(8));
  device->Release(memory);
  device->Release(memory);
}
TEST_CASE("fault: memory of the pool that is released as other memory" * doctest::skip()) {
  const auto device = OpenOn(SmallMachine());
  device->Release(Take(device->AllocatePooled(8)));
}
TEST_CASE("fault: memory that is freed while work is queued" * doctest::skip()) {
  const auto device = OpenOn(SmallMachine());
  void* const memory = Take(device->Allocate(8));
  device->Zero(memory, 8);
  cudaFree(memory);
}
TEST_CASE("fault: a clock that is read before the device reached it" * doctest::skip()) {
  const auto device = OpenOn(SmallMachine());
  const auto clock = device->MakeClock();
  const size_t first = clock->Mark();
  (void)clock->SecondsBetween(first, clock->Mark());
}
TEST_CASE("fault: work for a stream that is not alive" * doctest::skip()) {
  StartEmulatedRuntime(SmallMachine());
  cudaStreamSynchronize(nullptr);
}

struct Ending {
  int status = -1;
  std::string output;
};

Ending RunAlone(const std::string& name) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  FILE* const pipe = popen((self + " --no-skip -tc='" + name + "' 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ending ending;
  std::array<char, 4096> bytes{};
  for (size_t count = 0; (count = fread(bytes.data(), 1, bytes.size(), pipe)) > 0;) {
    ending.output.append(bytes.data(), count);
  }
  const int result = pclose(pipe);
  if (WIFEXITED(result)) ending.status = WEXITSTATUS(result);
  return ending;
}

TEST_CASE("cuda device: a call that no GPU would accept ends the program with exit code 70") {
  struct Row {
    const char* name;
    const char* why;
  };
  for (const Row& row :
       {Row{"fault: an allocation that fails for another reason", "taking memory"},
        Row{"fault: a copy beyond an allocation", "the GPU accesses only allocated memory"},
        Row{"fault: memory that is released twice",
            "memory is freed by the allocator it came from"},
        Row{"fault: memory of the pool that is released as other memory",
            "memory is freed by the allocator it came from"},
        Row{"fault: memory that is freed while work is queued", "memory is freed after all work"},
        Row{"fault: a clock that is read before the device reached it", "cudaEventElapsedTime"},
        Row{"fault: work for a stream that is not alive", "work goes to a live stream"}}) {
    CAPTURE(row.name);
    const Ending ending = RunAlone(row.name);
    CAPTURE(ending.output);
    CHECK(ending.status == 70);
    CHECK(ending.output.find(row.why) != std::string::npos);
  }
}

}  // namespace
}  // namespace ckplan::cuda
