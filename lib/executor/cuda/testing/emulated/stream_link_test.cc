// Runs the link of a GPU to its host over an emulated CUDA runtime, which does the work of its
// streams as late as a GPU may, or that of side streams as soon as one may.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/executor/cuda/gpu/cuda_device.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {
namespace {

constexpr int64_t kCount = 100;
constexpr int64_t kSize = kCount * static_cast<int64_t>(sizeof(int));
constexpr const char* kHurry = "side streams hurry";
constexpr const char* kNoWait = "no stream waits for another";

std::unique_ptr<Device> OpenWith(const EmulatedMachine& machine) {
  StartEmulatedRuntime(machine);
  return OpenCudaDevice(
             {},
             [](const DeviceOptions&, void*) -> Result<OpenedLibraries> {
               return OpenedLibraries{std::make_unique<UnusedLibraries>(), "no libraries"};
             })
      .value();
}

std::unique_ptr<Device> OpenWith(const std::vector<std::string>& faults) {
  EmulatedMachine machine;
  machine.faults.insert(faults.begin(), faults.end());
  return OpenWith(machine);
}

// Moves a buffer of ones to the host, makes it zero when it has been dropped, and brings it back.
// Returns what is in the buffer then.
std::vector<int> ThereAndBack(const std::vector<std::string>& faults, bool is_half_duplex = false) {
  const auto device = OpenWith(faults);
  std::vector<int> back(kCount);
  {
    const auto link = device->MakeCopyLink({is_half_duplex, false});
    const std::vector<int> ones(kCount, 1);
    void* const host = link->AllocateHost(kSize).value();
    void* const source = device->Allocate(kSize).value();
    void* const buffer = device->Allocate(kSize).value();
    device->Upload(source, ones.data(), kSize);
    device->Copy(buffer, source, kSize);  // Is queued, so the copy out must wait for it.
    link->FillHost(host, 0xFF, kSize);
    link->Wait(link->CopyOut(host, buffer, kSize));
    device->Zero(buffer, kSize);
    const size_t arrival = link->CopyIn(buffer, host, kSize);
    link->Wait(arrival);
    device->Copy(source, buffer, kSize);
    device->Download(back.data(), source, kSize);
    device->Release(source);
    device->Release(buffer);
    link->ReleaseHost(host);
  }
  const EmulatedUse left = UseOfEmulatedRuntime();
  CHECK(left.pinned == 0);
  CHECK(left.events == 0);
  CHECK(left.streams == 1);  // The device's own.
  return back;
}

}  // namespace

TEST_CASE("stream link: copies wait for the GPU, and the GPU for copies") {
  const std::vector<int> ones(kCount, 1);
  for (const bool is_half_duplex : {false, true}) {
    CHECK(ThereAndBack({}, is_half_duplex) == ones);
    CHECK(ThereAndBack({kHurry}, is_half_duplex) == ones);
  }
}

TEST_CASE("stream link: events are used again") {
  const auto device = OpenWith(EmulatedMachine());
  const auto link = device->MakeCopyLink({});
  void* const host = link->AllocateHost(8).value();
  void* const buffer = device->Allocate(8).value();
  for (int i = 0; i < 100; ++i) {
    link->Wait(link->CopyOut(host, buffer, 8));
    link->Wait(link->CopyIn(buffer, host, 8));
  }
  CHECK(UseOfEmulatedRuntime().events == 2);
  device->Synchronize();
  device->Release(buffer);
  link->ReleaseHost(host);
}

TEST_CASE("stream link: copies in different directions have different streams") {
  for (const bool is_half_duplex : {false, true}) {
    const auto device = OpenWith(EmulatedMachine());
    const auto link = device->MakeCopyLink({is_half_duplex, false});
    CHECK(UseOfEmulatedRuntime().streams == (is_half_duplex ? 2 : 3));
  }
}

TEST_CASE("stream link: copies that nobody waits for show in what is read") {
  const std::vector<int> ones(kCount, 1);
  // A GPU may be late with its copies.
  const auto device = OpenWith(EmulatedMachine());
  const auto link = device->MakeCopyLink({});
  void* const host = link->AllocateHost(kSize).value();
  void* const buffer = device->Allocate(kSize).value();
  device->Upload(buffer, ones.data(), kSize);
  const size_t copy = link->CopyOut(host, buffer, kSize);
  device->Zero(buffer, kSize);  // Should have waited.
  device->Synchronize();
  link->Wait(copy);
  device->Synchronize();
  CHECK(static_cast<const int*>(host)[0] == 0);
  device->Release(buffer);
  link->ReleaseHost(host);
}

TEST_CASE("stream link: a copy that does not wait for the GPU shows, if the GPU hurries") {
  CHECK(ThereAndBack({kHurry, kNoWait}) != std::vector<int>(kCount, 1));
}

TEST_CASE("stream link: a host without memory to pin is reported") {
  EmulatedMachine machine;
  machine.failures["cudaMallocHost"] = cudaErrorMemoryAllocation;
  const auto device = OpenWith(machine);
  const auto link = device->MakeCopyLink({});
  const Result<void*> memory = link->AllocateHost(1 << 20);
  CHECK(memory.error().code == ErrorCode::kInfeasible);
  CHECK(memory.error().message.find("--host-memory") != std::string::npos);
}

}  // namespace ckplan::cuda
