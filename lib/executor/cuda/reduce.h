// Reductions for which ForRows is unsuitable: few results over many elements each, where a team is
// too small, or adjacent results, where a team's reads would be scattered in memory.
//
//   rows      value(result, i) for neighbouring i are adjacent          sum over the last axis
//   columns   value(result, i) for neighbouring results are adjacent    sum over the first axis
//
// A thread block is a grid of `across` results by `along` threads per result. Long results are
// divided into parts, each reduced by one block; the partial results go to the workspace and are
// combined in order. The order of every sum depends only on the shape.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

struct ReduceShape {
  int64_t results = 0;
  int64_t length = 0;  // Elements per result.
  int64_t across = 1;  // Results per block. `across` and `along` are powers of two.
  int64_t along = kBlockThreads;
  int64_t parts = 1;

  static constexpr ReduceShape Of(int64_t results, int64_t length, bool is_columns) {
    constexpr int64_t kMinShare = 4;  // Minimum number of elements per thread.
    constexpr int64_t kColumns = 32;  // The columns that one memory access covers.
    constexpr int64_t kWantedBlocks =
        4096;  // Many per multiprocessor, so that the last wave is short.
    constexpr int64_t kMaxParts = 256;
    ReduceShape shape{results, length};
    int64_t columns = 1;
    while (is_columns && columns < kColumns && columns < results) columns *= 2;
    int64_t along = 1;
    while (along < kBlockThreads / columns && along * kMinShare < length) along *= 2;
    shape.along = along;
    shape.across = kBlockThreads / along;
    const int64_t blocks = std::max<int64_t>(1, CeilDiv(results, shape.across));
    const int64_t wanted = kWantedBlocks / blocks;
    const int64_t possible = length / (along * kMinShare * 4);
    shape.parts = std::clamp<int64_t>(std::min(wanted, possible), 1, kMaxParts);
    return shape;
  }

  // Returns the size in bytes of Reduce's workspace for this Value.
  template <typename Value>
  constexpr int64_t workspace() const {
    return parts == 1 ? 0 : parts * results * static_cast<int64_t>(sizeof(Value));
  }

  CKPLAN_DEVICE int64_t FirstOf(int64_t part) const { return length * part / parts; }
};

namespace detail {

// Reduces one thread's share: every `along`-th element of a part. Loads several elements ahead, so
// that loads overlap although each addition waits for the previous one.
template <typename Value, typename MapTo, typename Combine>
CKPLAN_KERNEL Value ReduceShare(const ReduceShape& shape, int64_t result, int64_t part,
                                int64_t rank, Value identity, const MapTo& map,
                                const Combine& combine) {
  Value value = identity;
  if (result >= shape.results) return value;
  constexpr int kAhead = 4;
  const int64_t end = shape.FirstOf(part + 1);
  int64_t i = shape.FirstOf(part) + rank;
  for (; i + (kAhead - 1) * shape.along < end; i += kAhead * shape.along) {
    Value next[kAhead];
    for (int k = 0; k < kAhead; ++k) next[k] = map(result, i + k * shape.along);
    for (int k = 0; k < kAhead; ++k) value = combine(value, next[k]);
  }
  for (; i < end; i += shape.along) value = combine(value, map(result, i));
  return value;
}

template <typename Value, typename Finish>
CKPLAN_KERNEL void ReduceStore(const ReduceShape& shape, int64_t result, int64_t part, Value value,
                               Value* partials, const Finish& finish) {
  if (result >= shape.results) return;
  if (shape.parts == 1) {
    finish(result, value);
  } else {
    partials[part * shape.results + result] = value;
  }
}

template <typename Value, typename MapTo, typename Combine, typename Finish>
__global__ void __launch_bounds__(kBlockThreads)
    ReduceKernel(ReduceShape shape, Value identity, MapTo map, Combine combine, Finish finish,
                 Value* partials) {
  alignas(kPartialBytes) __shared__ unsigned char scratch[kBlockThreads * kPartialBytes];
  auto* shares = reinterpret_cast<Value*>(scratch);
  const int64_t column = threadIdx.x % shape.across;
  const int64_t rank = threadIdx.x / shape.across;
  const int64_t groups = CeilDiv(shape.results, shape.across);
  for (int64_t block = blockIdx.x; block < groups * shape.parts; block += gridDim.x) {
    const int64_t result = block % groups * shape.across + column;
    const int64_t part = block / groups;
    shares[threadIdx.x] = ReduceShare(shape, result, part, rank, identity, map, combine);
    __syncthreads();
    for (int64_t half = shape.along / 2; half > 0; half /= 2) {
      if (rank < half) {
        shares[threadIdx.x] =
            combine(shares[threadIdx.x], shares[threadIdx.x + half * shape.across]);
      }
      __syncthreads();
    }
    if (rank == 0) ReduceStore(shape, result, part, shares[column], partials, finish);
    __syncthreads();
  }
}

template <typename Value, typename MapTo, typename Combine, typename Finish>
void ReduceParts(Device& device, const ReduceShape& shape, Value identity, const MapTo& map,
                 const Combine& combine, const Finish& finish, Value* partials) {
  const int64_t blocks = CeilDiv(shape.results, shape.across) * shape.parts;
  Launch(device, ReduceKernel<Value, MapTo, Combine, Finish>, {BlocksFor(device, blocks)}, shape,
         identity, map, combine, finish, partials);
}

template <typename Value, typename Combine, typename Finish>
struct CombineParts {
  ReduceShape shape;
  const Value* partials;
  Combine combine;
  Finish finish;
  CKPLAN_KERNEL void operator()(int64_t result) const {
    Value value = partials[result];
    for (int64_t part = 1; part < shape.parts; ++part) {
      value = combine(value, partials[part * shape.results + result]);
    }
    finish(result, value);
  }
};

}  // namespace detail

// Calls finish(result, combination of map(result, i) over all i) for each result. map and finish
// are kernels; `combine` is a functor such as SumOf. A Value has at most 16 bytes and no
// constructors. `workspace` has shape.workspace<Value>() bytes.
template <typename Value, typename MapTo, typename Combine, typename Finish>
void Reduce(Device& device, const ReduceShape& shape, Value identity, const MapTo& map,
            const Combine& combine, const Finish& finish, void* workspace) {
  static_assert(sizeof(Value) <= kPartialBytes);
  if (shape.results <= 0) return;
  auto* partials = static_cast<Value*>(workspace);
  detail::ReduceParts(device, shape, identity, map, combine, finish, partials);
  if (shape.parts == 1) return;
  ForEach(device, shape.results,
          detail::CombineParts<Value, Combine, Finish>{shape, partials, combine, finish});
}

}  // namespace ckplan::cuda
