// The threads that work on one row together. All of them run the body of ForRows. Values that the
// body computes outside of the methods of Team are computed by every thread redundantly; writes
// outside of these methods must be guarded by `IsFirst()`.
#pragma once

#include <cstdint>

#include "lib/executor/cuda/kernel.h"

#ifndef __CUDACC__
#include "lib/executor/cuda/host/emulated_blocks.h"
#endif

namespace ckplan::cuda {

inline constexpr int kWarpTeam = 32;
#ifndef CKPLAN_SANITIZES_THREADS
inline constexpr int kBlockTeam = 256;
inline constexpr int kLargeTeam = 1024;
#else  // The emulation's time grows quadratically with the threads.
inline constexpr int kBlockTeam = 64;
inline constexpr int kLargeTeam = 128;
#endif

// Returns the size of a team: a warp for short rows, a block for long ones, a large block if there
// are few long rows. The size depends only on the shape, and so does the order of sums.
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
    Wait();  // Waits until all have read the result, as the next call overwrites it.
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

}  // namespace ckplan::cuda
