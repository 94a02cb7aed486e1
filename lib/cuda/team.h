// The threads that work on one row together. The body of ForRows is run by all of them: what it
// computes outside of the methods of Team, each thread computes for itself, and all get the same;
// what it writes there, `IsFirst()` must guard.
//
// On the host one thread plays all of them, in the order in which the GPU combines.
#pragma once

#include <cstdint>

#include "lib/cuda/kernel.h"

namespace ckplan::cuda {

inline constexpr int kWarpTeam = 32;
inline constexpr int kBlockTeam = 256;
inline constexpr int kLargeTeam = 1024;

// A warp for short rows, a block for long ones, a large block where there are few of them. Depends
// on the shape alone, and with it the order of sums.
constexpr int TeamSize(int64_t rows, int64_t length) {
  constexpr int64_t kShort = 512;
  constexpr int64_t kLong = 16384;
  constexpr int64_t kFewRows = 512;
  if (length <= kShort) return kWarpTeam;
  return length >= kLong && rows <= kFewRows ? kLargeTeam : kBlockTeam;
}

// Of one partial result; each thread of a team has one.
inline constexpr int kPartialBytes = 16;

class Team {
 public:
  // `scratch`: kPartialBytes for each thread of the team.
  CKPLAN_KERNEL Team(int rank, int size, void* scratch)
      : rank_(rank), size_(size), scratch_(scratch) {}

  // One thread of the team, for what is written once.
  CKPLAN_KERNEL bool IsFirst() const { return rank_ == 0; }

  // body(i) for each i below `count`; all of it is done, and seen by all, on return.
  template <typename Body>
  CKPLAN_KERNEL void ForEach(int64_t count, const Body& body) const {
#ifdef __CUDA_ARCH__
    for (int64_t i = rank_; i < count; i += size_) body(i);
    Wait();
#else
    for (int64_t i = count; i-- > 0;) body(i);  // As ForEach of launch.h has it.
#endif
  }

  // combine(...combine(identity, map(0))..., map(count - 1)), in an order that depends on `count`
  // and the team's size alone. All threads get the result. Value: up to 16 bytes, without
  // constructors.
  template <typename Value, typename MapTo, typename Combine>
  CKPLAN_KERNEL Value Reduce(int64_t count, Value identity, const MapTo& map,
                             const Combine& combine) const {
    static_assert(sizeof(Value) <= kPartialBytes);
    auto* partial = static_cast<Value*>(scratch_);
#ifdef __CUDA_ARCH__
    partial[rank_] = Share(rank_, count, identity, map, combine);
    Wait();
    for (int half = size_ / 2; half > 0; half /= 2) {
      if (rank_ < half) partial[rank_] = combine(partial[rank_], partial[rank_ + half]);
      Wait();
    }
    const Value result = partial[0];
    Wait();  // Before the next call writes.
    return result;
#else
    for (int rank = 0; rank < size_; ++rank) {
      partial[rank] = Share(rank, count, identity, map, combine);
    }
    for (int half = size_ / 2; half > 0; half /= 2) {
      for (int rank = 0; rank < half; ++rank) {
        partial[rank] = combine(partial[rank], partial[rank + half]);
      }
    }
    return partial[0];
#endif
  }

  // Σ map(i).
  template <typename MapTo>
  CKPLAN_KERNEL float Sum(int64_t count, const MapTo& map) const {
    return Reduce(count, 0.0F, map, SumOf());
  }

 private:
  template <typename Value, typename MapTo, typename Combine>
  CKPLAN_KERNEL Value Share(int rank, int64_t count, Value identity, const MapTo& map,
                            const Combine& combine) const {
    Value value = identity;
    for (int64_t i = rank; i < count; i += size_) value = combine(value, map(i));
    return value;
  }

#ifdef __CUDA_ARCH__
  __device__ void Wait() const {
    if (size_ <= kWarpTeam) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
#endif

  int rank_;
  int size_;
  void* scratch_;
};

}  // namespace ckplan::cuda
