// The language of kernels: C++ that nvcc compiles for the GPU and any compiler for the host, where
// tests run identical kernels without a GPU (host/host_device.h).
//
// CKPLAN_DEVICE (lib/executor/scalar/integers.h) marks functions that kernels call,
// CKPLAN_KERNEL the lambdas that are kernels.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/op_spec.h"

// CKPLAN_UNROLL precedes loops over values that must stay in registers: nvcc might not unroll a
// loop with a long body, and would then keep the values in memory.
#ifdef __CUDACC__
#define CKPLAN_KERNEL __device__
#define CKPLAN_UNROLL _Pragma("unroll")
#else
#define CKPLAN_KERNEL
#define CKPLAN_UNROLL
#endif

namespace ckplan::cuda {

// The number of elements that a thread reads at once if possible: 16 bytes of float32, 8 of
// bfloat16.
inline constexpr int64_t kVector = 4;
// In kernels that process whole tensors, a thread handles 16 bytes of bfloat16, or twice 16 bytes
// of float32.
inline constexpr int64_t kWide = 8;

// Returns the upper half of a float32, rounded to nearest, ties to even; NaN stays NaN.
CKPLAN_DEVICE inline uint16_t ToBFloat16(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

CKPLAN_DEVICE inline float FromBFloat16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value = 0;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

struct alignas(16) Float4 {
  float at[kVector];
};
struct alignas(8) BFloat4 {
  uint16_t at[kVector];
};
struct Float8 {
  float at[kWide];
};
struct alignas(16) BFloat8 {
  uint16_t at[kWide];
};

// A float input tensor, stored as float32 or bfloat16, so that one kernel serves both.
class FloatsIn {
 public:
  FloatsIn() = default;
  FloatsIn(const void* data, ElementType type)
      : data_(data), is_half_(type == ElementType::kBFloat16) {}

  CKPLAN_DEVICE float operator[](int64_t i) const {
    return is_half_ ? FromBFloat16(static_cast<const uint16_t*>(data_)[i])
                    : static_cast<const float*>(data_)[i];
  }
  // Returns elements [kVector * group, kVector * group + kVector). The data must be aligned to 16
  // bytes.
  CKPLAN_DEVICE Float4 Load(int64_t group) const {
    if (!is_half_) return static_cast<const Float4*>(data_)[group];
    const BFloat4 halves = static_cast<const BFloat4*>(data_)[group];
    Float4 values;
    CKPLAN_UNROLL
    for (int k = 0; k < kVector; ++k) values.at[k] = FromBFloat16(halves.at[k]);
    return values;
  }
  // Returns elements [kWide * group, kWide * group + kWide), with the same alignment.
  CKPLAN_DEVICE Float8 LoadWide(int64_t group) const {
    Float8 values;
    if (is_half_) {
      const BFloat8 halves = static_cast<const BFloat8*>(data_)[group];
      CKPLAN_UNROLL
      for (int k = 0; k < kWide; ++k) values.at[k] = FromBFloat16(halves.at[k]);
      return values;
    }
    const auto* const quarters = static_cast<const Float4*>(data_) + 2 * group;
    const Float4 low = quarters[0];
    const Float4 high = quarters[1];
    CKPLAN_UNROLL
    for (int k = 0; k < kVector; ++k) {
      values.at[k] = low.at[k];
      values.at[kVector + k] = high.at[k];
    }
    return values;
  }
  CKPLAN_DEVICE bool is_null() const { return data_ == nullptr; }

 private:
  const void* data_ = nullptr;
  bool is_half_ = false;
};

// A float output tensor, stored as float32 or bfloat16.
class FloatsOut {
 public:
  FloatsOut() = default;
  FloatsOut(void* data, ElementType type) : data_(data), is_half_(type == ElementType::kBFloat16) {}

  CKPLAN_DEVICE void Set(int64_t i, float value) const {
    if (is_half_) {
      static_cast<uint16_t*>(data_)[i] = ToBFloat16(value);
    } else {
      static_cast<float*>(data_)[i] = value;
    }
  }
  CKPLAN_DEVICE void Store(int64_t group, const Float4& values) const {
    if (!is_half_) {
      static_cast<Float4*>(data_)[group] = values;
      return;
    }
    BFloat4 halves;
    CKPLAN_UNROLL
    for (int k = 0; k < kVector; ++k) halves.at[k] = ToBFloat16(values.at[k]);
    static_cast<BFloat4*>(data_)[group] = halves;
  }
  CKPLAN_DEVICE void StoreWide(int64_t group, const Float8& values) const {
    if (is_half_) {
      BFloat8 halves;
      CKPLAN_UNROLL
      for (int k = 0; k < kWide; ++k) halves.at[k] = ToBFloat16(values.at[k]);
      static_cast<BFloat8*>(data_)[group] = halves;
      return;
    }
    Float4 low, high;
    CKPLAN_UNROLL
    for (int k = 0; k < kVector; ++k) {
      low.at[k] = values.at[k];
      high.at[k] = values.at[kVector + k];
    }
    auto* const quarters = static_cast<Float4*>(data_) + 2 * group;
    quarters[0] = low;
    quarters[1] = high;
  }
  // Reads an element that was written.
  CKPLAN_DEVICE float operator[](int64_t i) const {
    return is_half_ ? FromBFloat16(static_cast<const uint16_t*>(data_)[i])
                    : static_cast<const float*>(data_)[i];
  }
  CKPLAN_DEVICE bool is_null() const { return data_ == nullptr; }

 private:
  void* data_ = nullptr;
  bool is_half_ = false;
};

// Reads 32-bit or 64-bit integers.
class IntegersIn {
 public:
  IntegersIn() = default;
  IntegersIn(const void* data, ElementType type)
      : data_(data), is_long_(type == ElementType::kInt64) {}

  CKPLAN_DEVICE int64_t operator[](int64_t i) const {
    return is_long_ ? static_cast<const int64_t*>(data_)[i]
                    : static_cast<int64_t>(static_cast<const int32_t*>(data_)[i]);
  }

 private:
  const void* data_ = nullptr;
  bool is_long_ = true;
};

CKPLAN_DEVICE constexpr int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
CKPLAN_DEVICE constexpr int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
CKPLAN_DEVICE constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Functions that combine two values in a reduction.
struct SumOf {
  CKPLAN_DEVICE float operator()(float a, float b) const { return a + b; }
};
// Returns the maximum; NaN propagates, as in the CPU backend.
struct LargerOf {
  CKPLAN_DEVICE float operator()(float a, float b) const { return a < b || b != b ? b : a; }
};

}  // namespace ckplan::cuda

namespace ckplan::cuda {

// Which rows fit in a warp's registers (lines.h).

// The numbers of groups of kVector elements per thread that kernels are compiled for, and the
// longest rows that fit in them.
inline constexpr int kFewGroups = 4;
inline constexpr int kManyGroups = 8;
inline constexpr int64_t kHoldingThreads = 32;
inline constexpr int64_t kLongestHeldRow = kManyGroups * kHoldingThreads * kVector;

// True if rows of this length fit. Each row starts at a multiple of kVector elements.
constexpr bool CanHoldRow(int64_t size) {
  return size > 0 && size % kVector == 0 && size <= kLongestHeldRow;
}
constexpr bool FitsFewGroups(int64_t size) {
  return size <= kFewGroups * kHoldingThreads * kVector;
}

// A uniform interface to elements of any type; float stands for both float types.

// Reads x[i] of a tensor of T.
template <typename T>
struct Reader {
  const T* data;
  Reader(const void* from, ElementType) : data(static_cast<const T*>(from)) {}
  CKPLAN_DEVICE T operator[](int64_t i) const { return data[i]; }
};
template <>
struct Reader<float> : FloatsIn {
  using FloatsIn::FloatsIn;
};

// Set(i, x) writes to a tensor of T, which may be null.
template <typename T>
struct Writer {
  T* data;
  Writer(void* to, ElementType) : data(static_cast<T*>(to)) {}
  CKPLAN_DEVICE void Set(int64_t i, T value) const { data[i] = value; }
  CKPLAN_DEVICE bool is_null() const { return data == nullptr; }
};
template <>
struct Writer<float> : FloatsOut {
  using FloatsOut::FloatsOut;
};

// Functions of one float, with their C library names, which both compilers provide.
CKPLAN_DEVICE inline float Exp(float x) { return expf(x); }
CKPLAN_DEVICE inline float Tanh(float x) { return tanhf(x); }
CKPLAN_DEVICE inline float Erf(float x) { return erff(x); }
CKPLAN_DEVICE inline float Sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
// Returns log(1 + e^x) without overflow.
CKPLAN_DEVICE inline float Softplus(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

// The parameter Math of the functions in lib/executor/scalar.
struct DeviceMath {
  CKPLAN_DEVICE static float Exp(float x) { return cuda::Exp(x); }
  CKPLAN_DEVICE static float Tanh(float x) { return cuda::Tanh(x); }
  CKPLAN_DEVICE static float Erf(float x) { return cuda::Erf(x); }
  CKPLAN_DEVICE static float Sigmoid(float x) { return cuda::Sigmoid(x); }
  CKPLAN_DEVICE static float Softplus(float x) { return cuda::Softplus(x); }
};

// Offsets of one call's buffers within its workspace.

// The alignment of every buffer and of the workspace itself, as required by the libraries.
inline constexpr int64_t kBufferAlignment = 256;
inline constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Pads buffers only to their alignment, because the workspace itself is aligned.
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
