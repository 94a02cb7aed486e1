// The memories that a kernel works in, and what is watched in them.
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

#include "lib/executor/cuda/ptx/lanes.h"

namespace ckplan::ptx {

// What is found wrong while kernels run.
class Findings {
 public:
  void Add(std::string what) { ++counts_[std::move(what)]; }
  bool empty() const { return counts_.empty(); }
  // Maps each finding to the number of times that it was found.
  const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  std::map<std::string, int64_t> counts_;
};

// Counts what a kernel moves in the GPU's memory.

// The unit in which a GPU moves its memory.
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

// A range of addresses of the GPU's memory: one allocation.
struct AddressRange {
  uint64_t begin = 0, end = 0;
  bool Contains(uint64_t address, int64_t bytes) const {
    return address >= begin && address <= end && static_cast<uint64_t>(bytes) <= end - address;
  }
};

// Returns the allocation that holds the address, or an empty range.
using FindRange = std::function<AddressRange(uint64_t address)>;

// The allocations that a kernel may access. Those that it accessed last are remembered.
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

// The position of a thread between the barriers of its block and of its warp. Each counter only
// grows, also from one block to the next.
struct Clock {
  uint32_t thread = 0;
  uint32_t block = 0;  // Barriers of the block so far.
  uint32_t warp = 0;   // Barriers of the thread's warp so far.
};

// The result of an access to shared memory.
enum class Access {
  kSound,
  kRace,       // Another thread accessed the same bytes, and no barrier lies between the accesses.
  kUnwritten,  // No byte that is read was written before.
};

// The shared memory of a block. It records the last writer and reader of each part, so that
// it finds accesses without a barrier between them, in whatever order the threads are emulated. A
// part has as many bytes as the smallest access of the kernel.
class SharedMemory {
 public:
  SharedMemory(int64_t bytes, int64_t part_bytes)
      : bytes_(static_cast<size_t>(bytes)),
        part_bytes_(static_cast<uint64_t>(part_bytes)),
        marks_(static_cast<size_t>((bytes + part_bytes - 1) / part_bytes)) {}

  // Forgets the contents. `clock` is the number of barriers so far, and those that follow are
  // greater.
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
  // The last reader, and the last one of all other threads, since the last barrier of the block.
  struct Readers {
    uint32_t block = 0;  // The clock of that barrier.
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

  // The marks of the parts that hold these bytes.
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
  uint32_t begin_ = 1;  // The clock at which the block started; marks below it are of other blocks.
};

}  // namespace ckplan::ptx
