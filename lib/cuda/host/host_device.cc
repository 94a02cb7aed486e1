#include "lib/cuda/host/host_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "lib/cuda/host/host_libraries.h"

namespace ckplan::cuda {

namespace {

constexpr size_t kAlignment = 256;  // As for cudaMalloc.

class HostDevice final : public Device {
 public:
  explicit HostDevice(const DeviceOptions& options)
      : Device(options), libraries_(MakeHostLibraries()) {}

  std::string Describe() const override { return "the host in place of a GPU"; }
  int64_t AvailableBytes() const override { return std::numeric_limits<int64_t>::max(); }

  Result<void*> Allocate(int64_t bytes) override {
    const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    void* memory =
        std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
    CKPLAN_CHECK(memory != nullptr, "tests fit into the host");
    return memory;
  }
  void Release(void* memory) override { std::free(memory); }
  void Upload(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Download(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void Zero(void* memory, int64_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, static_cast<size_t>(bytes));
  }
  void Synchronize() override {}

  Libraries& libraries() override { return *libraries_; }
  void* stream() const override { return nullptr; }

 private:
  std::unique_ptr<Libraries> libraries_;
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice(const DeviceOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace ckplan::cuda
