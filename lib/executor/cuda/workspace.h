// Offsets of the buffers of one call within its workspace.
#pragma once

#include <cstdint>

#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

// The alignment of every buffer and of the workspace itself, as required by the libraries.
inline constexpr int64_t kBufferAlignment = 256;
inline constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Buffers are padded only to their alignment: the workspace itself begins aligned.
class WorkspacePlan {
 public:
  // Reserves a buffer of `bytes` bytes and returns its offset.
  int64_t Add(int64_t bytes) {
    const int64_t offset = total_;
    total_ += CeilDiv(bytes, kBufferAlignment) * kBufferAlignment;
    return offset;
  }
  int64_t AddFloats(int64_t count) { return Add(count * kFloatBytes); }
  int64_t total() const { return total_; }

 private:
  int64_t total_ = 0;
};

// Returns the buffer that WorkspacePlan placed at `offset`, or null if the workspace is null.
inline void* BufferAt(void* workspace, int64_t offset) {
  return workspace == nullptr ? nullptr : static_cast<char*>(workspace) + offset;
}
inline float* FloatsAt(void* workspace, int64_t offset) {
  return static_cast<float*>(BufferAt(workspace, offset));
}

// Returns a pointer to the i-th element of a tensor.
inline const void* From(const void* data, ElementType type, int64_t i) {
  return data == nullptr ? nullptr : static_cast<const char*>(data) + i * SizeOf(type);
}
inline void* From(void* data, ElementType type, int64_t i) {
  return data == nullptr ? nullptr : static_cast<char*>(data) + i * SizeOf(type);
}

}  // namespace ckplan::cuda
