// Counts what a kernel moves in the GPU's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/executor/cuda/ptx/lanes.h"

namespace ckplan::ptx {

// A GPU moves its memory in sectors of so many bytes.
inline constexpr uint64_t kSectorBytes = 32;

// Traffic in one direction. The memory moves at least the distinct sectors, and at most `sectors`:
// caches decide between the two.
struct Traffic {
  int64_t bytes = 0;    // Sum of what each thread accesses.
  int64_t sectors = 0;  // Sum over the instructions of each warp of the sectors that it accesses.
  int64_t distinct_sectors = 0;  // Sectors that are accessed at all.
};

// Accesses of one instruction of a warp. Each is aligned, so that it lies within one sector.
struct WarpAccess {
  bool is_read = true;
  int64_t bytes = 0;  // What each thread accesses.
  std::array<uint64_t, kLanes> addresses{};
  size_t threads = 0;
};

class TrafficCounter {
 public:
  void Add(const WarpAccess& access);
  Traffic reads() const { return WithDistinct(reads_, read_); }
  Traffic writes() const { return WithDistinct(writes_, written_); }

 private:
  // A set of sectors, as bits in pages.
  class SectorSet {
   public:
    void Insert(uint64_t sector);
    int64_t size() const { return size_; }

   private:
    static constexpr uint64_t kPageSectors = 4096;
    using Page = std::array<uint64_t, kPageSectors / 64>;

    std::unordered_map<uint64_t, Page> pages_;
    uint64_t last_ = 0;
    Page* last_page_ = nullptr;  // That of last_. References into the map stay valid.
    int64_t size_ = 0;
  };

  static Traffic WithDistinct(Traffic traffic, const SectorSet& sectors) {
    traffic.distinct_sectors = sectors.size();
    return traffic;
  }

  Traffic reads_, writes_;
  SectorSet read_, written_;
};

}  // namespace ckplan::ptx
