// A piece of device memory, released when the object is destroyed.
#pragma once

#include <utility>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/executor/backend/backend.h"

namespace ckplan {

class DeviceBlock {
 public:
  static Result<DeviceBlock> Allocate(Backend& backend, Bytes bytes) {
    CKPLAN_ASSIGN_OR_RETURN(void* memory, backend.Allocate(bytes.count()));
    return DeviceBlock(backend, memory);
  }
  DeviceBlock(DeviceBlock&& other) noexcept
      : backend_(other.backend_), memory_(std::exchange(other.memory_, nullptr)) {}
  DeviceBlock& operator=(DeviceBlock&&) = delete;
  ~DeviceBlock() { backend_.Release(memory_); }

  void* get() const { return memory_; }

 private:
  DeviceBlock(Backend& backend, void* memory) : backend_(backend), memory_(memory) {}

  Backend& backend_;
  void* memory_;
};

}  // namespace ckplan
