// What the kernels of fused attention are made of: the task of a launch, its masks and biases, and
// the tiles of a block of threads in shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/problem/ops/attention.h"

namespace ckplan::cuda {

// Products of small matrices in shared memory, for attention: a warp multiplies 16 rows.
//
// The results lie in registers as the instruction mma of tensor cores lays them out: of each tile
// of 16 rows and 8 columns, thread `lane` has the elements
//
//   [0], [1]: row lane / 4, columns lane % 4 * 2 and the next;  [2], [3]: the same, 8 rows below
//
// Factors are bfloat16, or float32, which tensor cores round to 10 bits of mantissa (TF32) if that
// is allowed. Otherwise, and on the host, the thread itself multiplies, in float32 as well.
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

// A mask or a bias on the device.
struct FlashTerm {
  const void* at = nullptr;  // Null if there is none.
  bool is_bool = false, is_half = false, hides = false;
  int64_t samples = 1;
  int64_t strides[4] = {0, 0, 0, 0};

  CKPLAN_DEVICE int64_t Row(int64_t sample, int64_t head, int64_t query) const {
    return sample % samples * strides[0] + head * strides[1] + query * strides[2];
  }
  CKPLAN_DEVICE float Number(int64_t i) const {
    return is_half ? FromBFloat16(static_cast<const uint16_t*>(at)[i])
                   : static_cast<const float*>(at)[i];
  }
  CKPLAN_DEVICE bool Hides(int64_t i) const {
    return (static_cast<const uint8_t*>(at)[i] != 0) == hides;
  }
};

struct FlashRows {
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  CKPLAN_DEVICE int64_t At(int64_t sample, int64_t head, int64_t row) const {
    return sample * batch_stride + head * head_stride + row * row_stride;
  }
};

struct FlashTask {
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  FlashRows q_rows, k_rows, v_rows, y_rows;
  const void *q = nullptr, *k = nullptr, *v = nullptr, *dy = nullptr;
  void *y = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;  // Null if not wanted.
  float* log_sums = nullptr;                                       // Null if not kept.
  const float* dots = nullptr;                                     // D.
  FlashTerm mask, bias;
  float scale = 1, fill = 0;
  bool is_causal = false;
  bool is_tf32 = false;
  bool is_wide = false;  // Rows can be read 16 bytes at a time.

  CKPLAN_DEVICE int64_t group() const { return heads / key_heads; }
  CKPLAN_DEVICE int64_t Row(int64_t sample, int64_t head, int64_t query) const {
    return (sample * heads + head) * queries + query;
  }
};

// A score after mask and bias. `is_passed` is false where it does not depend on the product.
struct FlashScore {
  float value = 0;
  bool is_passed = true;
};

// What the scores of one query are masked by.
struct FlashMask {
  int64_t query = 0, mask = 0, bias = 0;

  CKPLAN_DEVICE FlashMask(const FlashTask& task, int64_t sample, int64_t head, int64_t row)
      : query(row),
        mask(task.mask.at == nullptr ? 0 : task.mask.Row(sample, head, row)),
        bias(task.bias.at == nullptr ? 0 : task.bias.Row(sample, head, row)) {}

  CKPLAN_DEVICE FlashScore Apply(const FlashTask& task, int64_t key, float product) const {
    if (key >= task.keys || query >= task.queries || (task.is_causal && key > query)) {
      return {-HUGE_VALF, false};
    }
    float score = product * task.scale;
    if (task.mask.at != nullptr) {
      const int64_t at = mask + key * task.mask.strides[3];
      if (!task.mask.is_bool) {
        score += task.mask.Number(at);
      } else if (task.mask.Hides(at)) {
        return {task.fill, false};
      }
    }
    if (task.bias.at == nullptr) return {score, true};
    const int64_t at = bias + key * task.bias.strides[3];
    if (!task.bias.is_bool) return {score + task.bias.Number(at), true};
    return {task.bias.Hides(at) ? -HUGE_VALF : score, true};
  }
};

template <typename T>
CKPLAN_DEVICE T Rounded(float value);
template <>
CKPLAN_DEVICE inline float Rounded<float>(float value) {
  return value;
}
template <>
CKPLAN_DEVICE inline uint16_t Rounded<uint16_t>(float value) {
  return ToBFloat16(value);
}

// Rows in shared memory are padded so that a warp reads its factors from all banks.
template <typename T>
inline constexpr int kRowGap = 16 / static_cast<int>(sizeof(T));

template <typename T>
struct alignas(16) Chunk {
  T at[16 / sizeof(T)];
};

// The sizes of tiles: kRows rows for a block of threads, kSpan rows of the other side at a time.
// Together they fill the 48 KiB of shared memory that every GPU gives a block.
template <typename T, int kSize>
struct ForwardTiles {
  static constexpr int kRows = 64;
  static constexpr int kSpan = sizeof(T) == 2 ? 64 : (kSize <= 64 ? 32 : 16);
};
template <typename T, int kSize>
struct BackwardTiles {
  static constexpr int kRows = sizeof(T) == 2 || kSize <= 64 ? 64 : 32;
  static constexpr int kSpan = sizeof(T) == 2 ? (kSize <= 64 ? 32 : 16) : (kSize <= 64 ? 16 : 8);
};

constexpr int FlashThreads(int rows) { return rows / kMmaRows * kWarpTeam; }

// A matrix in shared memory.
template <typename T, int kRows, int kColumns>
struct SharedRows {
  static constexpr int kStride = kColumns + kRowGap<T>;
  T at[kRows * kStride];

  CKPLAN_DEVICE T* Row(int row) { return at + row * kStride; }
};

// Copies rows of `size` elements to shared memory. The rows from `count` on, and what a row lacks
// of kSize elements, become zero.
template <int kFlashThreads, typename T, int kRows, int kSize>
CKPLAN_DEVICE void LoadRows(const T* from, int64_t stride, int64_t size, int64_t count,
                            bool is_wide, SharedRows<T, kRows, kSize>& to) {
  constexpr int kPart = 16 / sizeof(T);
  constexpr int kParts = kSize / kPart;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kParts; i += kFlashThreads) {
    const int row = i / kParts;
    const int column = i % kParts * kPart;
    Chunk<T> chunk = {};
    if (row < count && is_wide && column < size) {
      chunk = *reinterpret_cast<const Chunk<T>*>(from + row * stride + column);
    } else if (row < count) {
      CKPLAN_UNROLL
      for (int k = 0; k < kPart; ++k) {
        if (column + k < size) chunk.at[k] = from[row * stride + column + k];
      }
    }
    *reinterpret_cast<Chunk<T>*>(to.Row(row) + column) = chunk;
  }
}

// The part of a thread in the tiles of its warp: see above.
struct FlashLane {
  int lane, first;  // The thread in its warp; the warp's first row.

  CKPLAN_DEVICE FlashLane()
      : lane(static_cast<int>(threadIdx.x) % kWarpTeam),
        first(static_cast<int>(threadIdx.x) / kWarpTeam * kMmaRows) {}

  // The row and the column of element `i` of a tile; rows are those of the block.
  CKPLAN_DEVICE int Row(int half) const { return first + lane / 4 + 8 * half; }
  CKPLAN_DEVICE int Column(int tile, int i) const {
    return tile * kMmaColumns + lane % 4 * 2 + i % 2;
  }
};

// Combines what the four threads that share a row have found. `shared` has four numbers a row.
template <typename Combine>
CKPLAN_KERNEL void ReduceRows(const FlashLane& own, float* shared, const Combine& combine,
                              float (&values)[2]) {
  CKPLAN_UNROLL
  for (int half = 0; half < 2; ++half) shared[own.Row(half) * 4 + own.lane % 4] = values[half];
  __syncwarp();
  CKPLAN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float* const row = shared + own.Row(half) * 4;
    values[half] = combine(combine(row[0], row[1]), combine(row[2], row[3]));
  }
  __syncwarp();
}

template <int kTiles>
CKPLAN_DEVICE void Clear(float (&sums)[kTiles][4]) {
  CKPLAN_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) {
    CKPLAN_UNROLL
    for (int i = 0; i < 4; ++i) sums[tile][i] = 0;
  }
}

// Writes the rows of a result that exist, times `scale`.
template <typename T, int kTiles>
CKPLAN_DEVICE void StoreRows(const FlashLane& own, const float (&sums)[kTiles][4],
                             const float (&scale)[2], T* to, int64_t stride, int64_t size,
                             int64_t count) {
  CKPLAN_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) {
    CKPLAN_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = own.Row(i / 2);
      const int column = own.Column(tile, i);
      if (row < count && column < size) {
        to[row * stride + column] = Rounded<T>(sums[tile][i] * scale[i / 2]);
      }
    }
  }
}

// Rounds a tile to the type of factors and leaves it in shared memory, for its own warp.
template <typename T, int kTiles, int kRows, int kColumns>
CKPLAN_KERNEL void ShareTile(const FlashLane& own, const float (&values)[kTiles][4],
                             SharedRows<T, kRows, kColumns>& to) {
  __syncwarp();  // The warp has read what was there.
  CKPLAN_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) {
    CKPLAN_UNROLL
    for (int i = 0; i < 4; ++i) {
      to.Row(own.Row(i / 2))[own.Column(tile, i)] = Rounded<T>(values[tile][i]);
    }
  }
  __syncwarp();
}

// The rows of one side of one head that a block of threads has.
struct FlashBlock {
  int64_t sample = 0, head = 0, first = 0;

  // Blocks are numbered by samples, heads and then rows.
  CKPLAN_DEVICE FlashBlock(int64_t block, int64_t heads, int64_t blocks_of_head, int64_t rows) {
    const int64_t of = block / blocks_of_head;
    sample = of / heads;
    head = of % heads;
    first = block % blocks_of_head * rows;
  }
};

}  // namespace ckplan::cuda
