// The memory of a device, and copies to, from and within it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/thread_link.h"

namespace ckplan {

struct MemoryUse {
  std::string what;
  int64_t bytes = 0;
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns about how many bytes Allocate can still provide.
  virtual int64_t AvailableBytes() const = 0;
  // kInfeasible: the device does not have that much memory. 0 bytes are allowed.
  virtual Result<void*> Allocate(int64_t bytes) = 0;
  virtual void Release(void* memory) = 0;
  // Allocates from a pool of the device's driver. The pool follows the order of the work on the
  // device, so memory that was released may be allocated again before the work that used it has
  // finished. Without a pool, this is Allocate.
  virtual Result<void*> AllocatePooled(int64_t bytes) { return Allocate(bytes); }
  virtual void ReleasePooled(void* memory) { Release(memory); }
  // The pool's peak: the maximum number of bytes in use since the last reset, as the driver counts
  // them. PooledPeak returns nothing if no driver counts them.
  virtual void ResetPooledPeak() {}
  virtual std::optional<int64_t> PooledPeak() { return std::nullopt; }
  // Returns the uses of the device's memory besides allocations, such as contexts and library
  // handles.
  virtual std::vector<MemoryUse> Overheads() const { return {}; }

  // Returns a link to the memory of the host. It must not outlive the device. The default is for
  // devices whose memory is the host's.
  virtual std::unique_ptr<CopyLink> MakeCopyLink(const CopyLinkOptions& options) {
    return std::make_unique<ThreadLink>(options);
  }

  // Upload and Download wait until the bytes have been copied.
  virtual void Upload(void* to_device, const void* from_host, int64_t bytes) = 0;
  virtual void Download(void* to_host, const void* from_device, int64_t bytes) = 0;
  // Copy and Zero may return before the bytes are written; Synchronize waits for all work.
  virtual void Copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void Zero(void* memory, int64_t bytes) = 0;
  virtual void Synchronize() = 0;
};

}  // namespace ckplan
