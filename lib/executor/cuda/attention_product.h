// Products of small matrices in shared memory, for attention: a warp multiplies 16 rows.
//
// The results lie in registers as the instruction mma of tensor cores lays them out: of each tile
// of 16 rows and 8 columns, thread `lane` has the elements
//
//   [0], [1]: row lane / 4, columns lane % 4 * 2 and the next;  [2], [3]: the same, 8 rows below
//
// Factors are bfloat16, or float32, of which tensor cores take 10 bits of mantissa (TF32) if that
// is allowed. Otherwise, and on the host, the thread itself multiplies, in float32 as well.
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

inline constexpr int kMmaRows = 16, kMmaColumns = 8;

// How an element of B is found: B[k][n] is at n * stride + k, or at k * stride + n.
enum class FactorOrder { kByColumn, kByRow };

namespace detail {

CKPLAN_DEVICE inline float ValueOf(float value) { return value; }
CKPLAN_DEVICE inline float ValueOf(uint16_t half) { return FromBFloat16(half); }

template <FactorOrder kOrder>
CKPLAN_DEVICE constexpr int PlaceOf(int k, int n, int stride) {
  return kOrder == FactorOrder::kByColumn ? n * stride + k : k * stride + n;
}

template <int kDepth, int kTiles, FactorOrder kOrder, typename T>
CKPLAN_DEVICE void MultiplyOneByOne(const T* a, int a_stride, const T* b, int b_stride, int lane,
                                    float (*sums)[4]) {
  const int row = lane / 4;
  const int column = lane % 4 * 2;
  for (int k = 0; k < kDepth; ++k) {
    const float high = ValueOf(a[row * a_stride + k]);
    const float low = ValueOf(a[(row + 8) * a_stride + k]);
    CKPLAN_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int n = tile * kMmaColumns + column;
      const float left = ValueOf(b[PlaceOf<kOrder>(k, n, b_stride)]);
      const float right = ValueOf(b[PlaceOf<kOrder>(k, n + 1, b_stride)]);
      sums[tile][0] += high * left;
      sums[tile][1] += high * right;
      sums[tile][2] += low * left;
      sums[tile][3] += low * right;
    }
  }
}

#ifdef __CUDA_ARCH__

CKPLAN_DEVICE inline uint32_t PairAt(const uint16_t* at) {
  return *reinterpret_cast<const uint32_t*>(at);
}

template <FactorOrder kOrder>
CKPLAN_DEVICE uint32_t PairOf(const uint16_t* b, int k, int n, int stride) {
  const uint16_t* const at = b + PlaceOf<kOrder>(k, n, stride);
  if (kOrder == FactorOrder::kByColumn) return PairAt(at);
  return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[stride]) << 16;
}

template <int kDepth, int kTiles, FactorOrder kOrder>
CKPLAN_DEVICE void MultiplyByTensorCores(const uint16_t* a, int a_stride, const uint16_t* b,
                                         int b_stride, int lane, float (*sums)[4]) {
  const int group = lane / 4;
  const int pair = lane % 4 * 2;
  CKPLAN_UNROLL
  for (int k = 0; k < kDepth; k += 16) {
    const uint16_t* const high = a + group * a_stride + k + pair;
    const uint16_t* const low = high + 8 * a_stride;
    const uint32_t a0 = PairAt(high), a1 = PairAt(low), a2 = PairAt(high + 8), a3 = PairAt(low + 8);
    CKPLAN_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int n = tile * kMmaColumns + group;
      const uint32_t b0 = PairOf<kOrder>(b, k + pair, n, b_stride);
      const uint32_t b1 = PairOf<kOrder>(b, k + pair + 8, n, b_stride);
      float* const sum = sums[tile];
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
  }
}

// Rounds to the nearest number of 10 bits of mantissa, away from zero where two are as near.
CKPLAN_DEVICE inline uint32_t Tf32Of(float value) {
  const uint32_t bits = __float_as_uint(value);
  return (bits & 0x7FFFFFFFU) > 0x7F800000U ? bits : (bits + 0x1000U) & 0xFFFFE000U;
}

template <int kDepth, int kTiles, FactorOrder kOrder>
CKPLAN_DEVICE void MultiplyByTensorCores(const float* a, int a_stride, const float* b, int b_stride,
                                         int lane, float (*sums)[4]) {
  const int group = lane / 4;
  const int place = lane % 4;
  CKPLAN_UNROLL
  for (int k = 0; k < kDepth; k += 8) {
    const float* const high = a + group * a_stride + k + place;
    const float* const low = high + 8 * a_stride;
    const uint32_t a0 = Tf32Of(high[0]), a1 = Tf32Of(low[0]);
    const uint32_t a2 = Tf32Of(high[4]), a3 = Tf32Of(low[4]);
    CKPLAN_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int n = tile * kMmaColumns + group;
      const uint32_t b0 = Tf32Of(b[PlaceOf<kOrder>(k + place, n, b_stride)]);
      const uint32_t b1 = Tf32Of(b[PlaceOf<kOrder>(k + place + 4, n, b_stride)]);
      float* const sum = sums[tile];
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
  }
}

#endif

}  // namespace detail

// Adds the product of A, 16 rows of kDepth elements, and B, of 8 * kTiles columns, to `sums`. All
// threads of the warp must call it. kDepth is a multiple of 16 for bfloat16, of 8 for float32.
template <int kDepth, int kTiles, FactorOrder kOrder, typename T>
CKPLAN_DEVICE void MultiplyTile(bool is_tf32, const T* a, int a_stride, const T* b, int b_stride,
                                int lane, float (*sums)[4]) {
#ifdef __CUDA_ARCH__
  if (sizeof(T) == sizeof(uint16_t) || is_tf32) {
    detail::MultiplyByTensorCores<kDepth, kTiles, kOrder>(a, a_stride, b, b_stride, lane, sums);
    return;
  }
#else
  static_cast<void>(is_tf32);
#endif
  detail::MultiplyOneByOne<kDepth, kTiles, kOrder>(a, a_stride, b, b_stride, lane, sums);
}

}  // namespace ckplan::cuda
