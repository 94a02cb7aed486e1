// The GPU that this backend's operators run on: memory, a stream, and the vendor's libraries.
// CudaDevice (gpu/cuda_device.h) is a real GPU; HostDevice (host/host_device.h) emulates one on the
// host, for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/backend/device_memory.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

struct DeviceOptions {
  // Allow TF32 for float32 convolutions and matrix products: 10 bits of mantissa instead of 23. By
  // default, PyTorch allows it only for convolutions.
  bool allow_tf32 = false;
  bool allow_tf32_products = false;
  // Maximum workspace of a library call, in bytes. The default is 256 MiB, or more for a
  // convolution that needs more, also for tensor cores.
  std::optional<int64_t> workspace_limit;
  // Maximum number of blocks in one launch; further work is done by the same threads in a loop.
  // Tests lower it. No result depends on it.
  int64_t max_blocks = int64_t{1} << 20;
};

// Describes what uses TF32, to append to a sentence: ", TF32 in convolutions", or nothing.
inline const char* DescribeTf32(const DeviceOptions& options) {
  if (!options.allow_tf32) return "";
  return options.allow_tf32_products ? ", TF32" : ", TF32 in convolutions";
}

class Device : public DeviceMemory {
 public:
  explicit Device(const DeviceOptions& options) : options_(options) {}

  const DeviceOptions& options() const { return options_; }

  virtual std::string Describe() const = 0;
  virtual Libraries& libraries() = 0;
  virtual void* stream() const = 0;  // A cudaStream_t.
  // See Backend::Record.
  virtual std::unique_ptr<RecordedWork> Record(const std::function<void()>&) { return nullptr; }
  // The default is for devices that queue no work.
  virtual std::unique_ptr<DeviceClock> MakeClock() { return std::make_unique<HostClock>(); }

 private:
  DeviceOptions options_;
};

// A small constant table of an operator, such as indices or interpolation weights, stored in device
// memory from Prepare on. It is not part of the plan; docs/executor.md says how it is counted.
template <typename T>
class DeviceTable {
 public:
  DeviceTable() = default;
  static Result<DeviceTable> Create(Device& device, const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, device.Allocate(bytes));
    device.Upload(memory, values.data(), bytes);
    return DeviceTable(device, static_cast<T*>(memory));
  }
  DeviceTable(DeviceTable&& other) noexcept
      : device_(other.device_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceTable& operator=(DeviceTable&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceTable() {
    if (data_ != nullptr) device_->Release(data_);
  }

  const T* data() const { return data_; }

 private:
  DeviceTable(Device& device, T* data) : device_(&device), data_(data) {}

  Device* device_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace ckplan::cuda
