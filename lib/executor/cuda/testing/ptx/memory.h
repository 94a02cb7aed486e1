// The memories that a kernel uses, and what is checked in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/executor/cuda/testing/ptx/lanes.h"

namespace ckplan::ptx {

// Faults found while kernels run.
class Findings {
 public:
  void Add(std::string what) { ++counts_[std::move(what)]; }
  bool empty() const { return counts_.empty(); }
  // Maps each finding to how often it was found.
  const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  std::map<std::string, int64_t> counts_;
};

// Counts a kernel's GPU memory traffic.

// The unit of GPU memory transfers.
inline constexpr uint64_t kSectorBytes = 32;

// Traffic in one direction. The memory transfers at least the distinct sectors and at most
// `sectors`, depending on caches.
struct Traffic {
  int64_t bytes = 0;    // Sum of all threads' accesses.
  int64_t sectors = 0;  // Sum, over all instructions of all warps, of the sectors that they access.
  int64_t distinct_sectors = 0;  // Sectors accessed at least once.
};

// Accesses of one instruction of a warp. Each is aligned, so it lies within one sector.
struct WarpAccess {
  bool is_read = true;
  int64_t bytes = 0;  // Accessed by each thread.
  std::array<uint64_t, kLanes> addresses{};
  size_t threads = 0;
};

class TrafficCounter {
 public:
  void Add(const WarpAccess& access);
  Traffic reads() const { return WithDistinct(reads_, read_); }
  Traffic writes() const { return WithDistinct(writes_, written_); }

 private:
  // A set of sectors, stored as bits in pages.
  class SectorSet {
   public:
    void Insert(uint64_t sector);
    int64_t size() const { return size_; }

   private:
    static constexpr uint64_t kPageSectors = 4096;
    using Page = std::array<uint64_t, kPageSectors / 64>;

    std::unordered_map<uint64_t, Page> pages_;
    uint64_t last_ = 0;
    Page* last_page_ = nullptr;  // The page of last_. References into the map stay valid.
    int64_t size_ = 0;
  };

  static Traffic WithDistinct(Traffic traffic, const SectorSet& sectors) {
    traffic.distinct_sectors = sectors.size();
    return traffic;
  }

  Traffic reads_, writes_;
  SectorSet read_, written_;
};

// An address range of GPU memory: one allocation.
struct AddressRange {
  uint64_t begin = 0, end = 0;
  bool Contains(uint64_t address, int64_t bytes) const {
    return address >= begin && address <= end && static_cast<uint64_t>(bytes) <= end - address;
  }
};

// Returns the allocation that contains the address, or an empty range.
using FindRange = std::function<AddressRange(uint64_t address)>;

// The allocations that a kernel may access. Remembers the most recently accessed ones.
class GlobalMemory {
 public:
  explicit GlobalMemory(FindRange find) : find_(std::move(find)) {}

  bool Contains(uint64_t address, int64_t bytes) {
    for (const AddressRange& range : last_) {
      if (range.Contains(address, bytes)) return true;
    }
    const AddressRange range = find_(address);
    if (!range.Contains(address, bytes)) return false;
    last_[next_++ % kRemembered] = range;
    return true;
  }

 private:
  static constexpr size_t kRemembered = 4;
  FindRange find_;
  AddressRange last_[kRemembered];
  size_t next_ = 0;
};

// A thread's position between the barriers of its block and its warp. Counters only grow, even
// across blocks.
struct Clock {
  uint32_t thread = 0;
  uint32_t block = 0;  // Barriers of the block so far.
  uint32_t warp = 0;   // Barriers of the thread's warp so far.
};

// The result of a shared memory access.
enum class Access {
  kSound,
  kRace,       // Another thread accessed the same bytes without a barrier in between.
  kUnwritten,  // None of the bytes was written before.
};

// A block's shared memory. Records the last writer and reader of each part, so it finds accesses
// without a barrier in between, whatever order the threads are emulated in. A part is as large as
// the kernel's smallest access.
class SharedMemory {
 public:
  SharedMemory(int64_t bytes, int64_t part_bytes)
      : bytes_(static_cast<size_t>(bytes)),
        part_bytes_(static_cast<uint64_t>(part_bytes)),
        marks_(static_cast<size_t>((bytes + part_bytes - 1) / part_bytes)) {}

  // Forgets the contents. `clock` is the number of barriers so far; later ones are greater.
  void StartBlock(uint32_t clock);

  bool Contains(uint64_t address, int64_t bytes) const {
    return address <= bytes_.size() && static_cast<uint64_t>(bytes) <= bytes_.size() - address;
  }
  unsigned char* at(uint64_t address) { return bytes_.data() + address; }

  Access Read(uint64_t address, int64_t bytes, const Clock& clock);
  Access Write(uint64_t address, int64_t bytes, const Clock& clock);

 private:
  struct Reader {
    uint32_t thread = kNoThread;
    uint32_t warp_clock = 0;
  };
  // The last reader, and the last reader among all other threads, since the block's last barrier.
  struct Readers {
    uint32_t block = 0;  // That barrier's clock.
    Reader last, other;
    bool are_of_several_warps = false;
  };
  struct Mark {
    Clock written;
    Readers readers;
  };
  static constexpr uint32_t kNoThread = ~uint32_t{0};

  bool IsOrdered(const Clock& written, const Clock& now) const;
  static bool IsReadMeanwhile(const Readers& readers, const Clock& now);
  static void Add(const Clock& now, Readers& readers);

  // The marks of the parts that contain these bytes.
  struct Marks {
    Mark* first;
    Mark* last;
    Mark* begin() const { return first; }
    Mark* end() const { return last; }
  };
  Marks MarksOf(uint64_t address, int64_t bytes) {
    const uint64_t end = address + static_cast<uint64_t>(bytes);
    return {&marks_[address / part_bytes_], &marks_[(end - 1) / part_bytes_] + 1};
  }

  std::vector<unsigned char> bytes_;
  uint64_t part_bytes_;
  std::vector<Mark> marks_;
  uint32_t begin_ = 1;  // The clock when the block started; lower marks belong to other blocks.
};

}  // namespace ckplan::ptx
