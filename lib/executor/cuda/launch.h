// Starts kernels: on a GPU, or on thread blocks that the host emulates (emulated_blocks.h), so that
// kernels can be tested without a GPU.
//
//   ForEach   body(i) for each i: elementwise work, gathering, copies
//   Map       elementwise work on whole tensors, kWide elements at a time
//   ForRows   body(team, row): several threads work on a row together, and may reduce over it
//
// For sums of few but long rows, and sums over columns, see reduce.h.
//
// A body is a lambda marked CKPLAN_KERNEL that captures by value. It must be defined in a function
// or public method, not inside another lambda.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/kernel.h"

#ifdef __CUDACC__
#include "lib/executor/cuda/cuda_check.h"
#else
#include "lib/executor/cuda/testing/host/emulated_blocks.h"
#endif

namespace ckplan::cuda {

// The threads that work together on one row. All of them run the body of ForRows. Every thread
// redundantly computes values outside Team's methods; writes outside these methods must be guarded
// by `IsFirst()`.
inline constexpr int kWarpTeam = 32;
#ifndef CKPLAN_SANITIZES_THREADS
inline constexpr int kBlockTeam = 256;
inline constexpr int kLargeTeam = 1024;
#else  // The emulation's time grows quadratically with the threads.
inline constexpr int kBlockTeam = 64;
inline constexpr int kLargeTeam = 128;
#endif

// Returns a team's size: a warp for short rows, a block for long ones, a large block for few long
// rows. It depends only on the shape, and so does the order of sums.
constexpr int TeamSize(int64_t rows, int64_t length) {
  constexpr int64_t kShort = 512;
  constexpr int64_t kLong = 16384;
  constexpr int64_t kFewRows = 512;
  if (length <= kShort) return kWarpTeam;
  return length >= kLong && rows <= kFewRows ? kLargeTeam : kBlockTeam;
}

// Maximum size of a partial result; each thread of a team has one.
inline constexpr int kPartialBytes = 16;

class Team {
 public:
  // `scratch` has kPartialBytes for each thread of the team.
  CKPLAN_KERNEL Team(int rank, int size, void* scratch)
      : rank_(rank), size_(size), scratch_(scratch) {}

  CKPLAN_KERNEL int rank() const { return rank_; }
  // True in exactly one thread of the team, for values that must be written once.
  CKPLAN_KERNEL bool IsFirst() const { return rank_ == 0; }

  // Calls body(i) for each i below `count`, followed by a barrier: on return, all threads see all
  // results.
  template <typename Body>
  CKPLAN_KERNEL void ForEach(int64_t count, const Body& body) const {
    for (int64_t i = rank_; i < count; i += size_) body(i);
    Wait();
  }

  // Returns combine(...combine(identity, map(0))..., map(count - 1)), in an order that depends only
  // on `count` and the team's size. All threads get the result. A Value has at most 16 bytes and no
  // constructors.
  template <typename Value, typename MapTo, typename Combine>
  CKPLAN_KERNEL Value Reduce(int64_t count, Value identity, const MapTo& map,
                             const Combine& combine) const {
    static_assert(sizeof(Value) <= kPartialBytes);
    auto* partial = static_cast<Value*>(scratch_);
    Value own = identity;
    for (int64_t i = rank_; i < count; i += size_) own = combine(own, map(i));
    partial[rank_] = own;
    Wait();
    for (int half = size_ / 2; half > 0; half /= 2) {
      if (rank_ < half) partial[rank_] = combine(partial[rank_], partial[rank_ + half]);
      Wait();
    }
    const Value result = partial[0];
    Wait();  // Everyone must have read the result before the next call overwrites it.
    return result;
  }

  // Returns Σ map(i).
  template <typename MapTo>
  CKPLAN_KERNEL float Sum(int64_t count, const MapTo& map) const {
    return Reduce(count, 0.0F, map, SumOf());
  }

 private:
  CKPLAN_KERNEL void Wait() const {
    if (size_ <= kWarpTeam) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  int rank_;
  int size_;
  void* scratch_;
};

inline constexpr int64_t kBlockThreads = kBlockTeam;

// Returns how many blocks to start where there is work for `wanted`.
inline int64_t BlocksFor(const Device& device, int64_t wanted) {
  return std::min(wanted, device.options().max_blocks);
}

struct Grid {
  int64_t blocks = 0;
  int64_t threads = kBlockThreads;
  bool has_barriers = true;
};

// Starts a __global__ function.
template <typename... Parameters, typename... Arguments>
void Launch(Device& device, void (*kernel)(Parameters...), const Grid& grid,
            const Arguments&... arguments) {
#ifdef __CUDACC__
  kernel<<<static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.threads), 0,
           StreamOf(device)>>>(arguments...);
  CheckLaunch();
#else
  EnqueueBlocks(device.stream(), grid.blocks, grid.threads, grid.has_barriers,
                [=] { kernel(arguments...); });
#endif
}

template <typename Body>
__global__ void __launch_bounds__(kBlockThreads) ForEachKernel(int64_t count, Body body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  for (int64_t i = blockIdx.x * kBlockThreads + threadIdx.x; i < count; i += step) body(i);
}

template <typename Body>
void ForEach(Device& device, int64_t count, const Body& body) {
  if (count <= 0) return;
  const int64_t blocks = BlocksFor(device, CeilDiv(count, kBlockThreads));
  Launch(device, ForEachKernel<Body>, {blocks, kBlockThreads, false}, count, body);
}

template <int kTeam, typename Body>
__global__ void __launch_bounds__(kTeam < kBlockThreads ? kBlockThreads : kTeam)
    ForRowsKernel(int64_t rows, Body body) {
  constexpr int kTeams = kTeam < kBlockThreads ? kBlockThreads / kTeam : 1;
  alignas(kPartialBytes) __shared__ unsigned char scratch[kTeams * kTeam * kPartialBytes];
  const int team_index = static_cast<int>(threadIdx.x) / kTeam;
  Team team(static_cast<int>(threadIdx.x) % kTeam, kTeam,
            scratch + team_index * kTeam * kPartialBytes);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kTeams;
  for (int64_t row = blockIdx.x * int64_t{kTeams} + team_index; row < rows; row += step) {
    body(team, row);
  }
}

// Like ForRows, with one warp per row, whatever its length.
template <typename Body>
void ForRowsByWarps(Device& device, int64_t rows, const Body& body) {
  if (rows <= 0) return;
  const int64_t blocks = BlocksFor(device, CeilDiv(rows, kBlockThreads / kWarpTeam));
  Launch(device, ForRowsKernel<kWarpTeam, Body>, {blocks}, rows, body);
}

template <typename Body>
void ForRows(Device& device, int64_t rows, int64_t length, const Body& body) {
  if (rows <= 0) return;
  const int team = TeamSize(rows, length);
  const int64_t teams = std::max<int64_t>(1, kBlockThreads / team);
  const int64_t blocks = BlocksFor(device, CeilDiv(rows, teams));
  if (team == kWarpTeam) {
    Launch(device, ForRowsKernel<kWarpTeam, Body>, {blocks}, rows, body);
  } else if (team == kBlockTeam) {
    Launch(device, ForRowsKernel<kBlockTeam, Body>, {blocks, kBlockTeam}, rows, body);
  } else {
    Launch(device, ForRowsKernel<kLargeTeam, Body>, {blocks, kLargeTeam}, rows, body);
  }
}

namespace detail {

// A functor, because kernel lambdas cannot be variadic.
template <typename F>
struct Map1 {
  int64_t count;
  FloatsOut y;
  F f;
  FloatsIn a;
  CKPLAN_DEVICE void operator()(int64_t group) const {
    const int64_t first = group * kWide;
    if (first + kWide <= count) {
      Float8 p = a.LoadWide(group);
      CKPLAN_UNROLL
      for (int k = 0; k < kWide; ++k) p.at[k] = f(p.at[k]);
      y.StoreWide(group, p);
      return;
    }
    for (int64_t i = first; i < count; ++i) y.Set(i, f(a[i]));
  }
};
template <typename F>
struct Map2 {
  int64_t count;
  FloatsOut y;
  F f;
  FloatsIn a, b;
  CKPLAN_DEVICE void operator()(int64_t group) const {
    const int64_t first = group * kWide;
    if (first + kWide <= count) {
      Float8 p = a.LoadWide(group);
      const Float8 q = b.LoadWide(group);
      CKPLAN_UNROLL
      for (int k = 0; k < kWide; ++k) p.at[k] = f(p.at[k], q.at[k]);
      y.StoreWide(group, p);
      return;
    }
    for (int64_t i = first; i < count; ++i) y.Set(i, f(a[i], b[i]));
  }
};
template <typename F>
struct Map3 {
  int64_t count;
  FloatsOut y;
  F f;
  FloatsIn a, b, c;
  CKPLAN_DEVICE void operator()(int64_t group) const {
    const int64_t first = group * kWide;
    if (first + kWide <= count) {
      Float8 p = a.LoadWide(group);
      const Float8 q = b.LoadWide(group);
      const Float8 r = c.LoadWide(group);
      CKPLAN_UNROLL
      for (int k = 0; k < kWide; ++k) p.at[k] = f(p.at[k], q.at[k], r.at[k]);
      y.StoreWide(group, p);
      return;
    }
    for (int64_t i = first; i < count; ++i) y.Set(i, f(a[i], b[i], c[i]));
  }
};

}  // namespace detail

// Computes y[i] = f(a[i], ...) for contiguous tensors of `count` elements. y may alias an input of
// the same type. f is a functor whose operator() is marked CKPLAN_DEVICE.
template <typename F>
void Map(Device& device, int64_t count, FloatsOut y, const F& f, FloatsIn a) {
  ForEach(device, CeilDiv(count, kWide), detail::Map1<F>{count, y, f, a});
}
template <typename F>
void Map(Device& device, int64_t count, FloatsOut y, const F& f, FloatsIn a, FloatsIn b) {
  ForEach(device, CeilDiv(count, kWide), detail::Map2<F>{count, y, f, a, b});
}
template <typename F>
void Map(Device& device, int64_t count, FloatsOut y, const F& f, FloatsIn a, FloatsIn b,
         FloatsIn c) {
  ForEach(device, CeilDiv(count, kWide), detail::Map3<F>{count, y, f, a, b, c});
}

}  // namespace ckplan::cuda
