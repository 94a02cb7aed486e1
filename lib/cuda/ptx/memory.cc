#include "lib/cuda/ptx/memory.h"

#include <algorithm>

namespace ckplan::ptx {

namespace {

constexpr uint32_t kWarp = 32;
constexpr unsigned char kSharedPattern = 0xEE;  // Makes reads of unwritten memory stand out.

}  // namespace

void SharedMemory::StartBlock(uint32_t clock) {
  begin_ = clock;
  std::fill(bytes_.begin(), bytes_.end(), kSharedPattern);
}

// Accesses by one thread are in order. Those by two threads are in order if a barrier of both lies
// between them.
bool SharedMemory::IsOrdered(const Clock& written, const Clock& now) const {
  if (written.block < begin_ || written.thread == now.thread || written.block < now.block) {
    return true;
  }
  const bool same_warp = written.thread / kWarp == now.thread / kWarp;
  return same_warp && written.warp < now.warp;
}

bool SharedMemory::IsReadMeanwhile(const Mark& mark, const Clock& now) const {
  if (mark.read.block != now.block) return false;
  if (mark.read_by_several_warps) return true;
  if (!mark.read_by_several_threads && mark.read.thread == now.thread) return false;
  const bool same_warp = mark.read.thread / kWarp == now.thread / kWarp;
  return !same_warp || mark.read.warp >= now.warp;
}

Access SharedMemory::Read(uint64_t address, int64_t bytes, const Clock& clock) {
  bool is_ordered = true;
  bool is_written = false;
  for (size_t i = address; i < address + static_cast<uint64_t>(bytes); ++i) {
    Mark& mark = marks_[i];
    // One written byte is enough: structs are copied with their padding, which nobody writes.
    is_written |= mark.written.block >= begin_;
    is_ordered &= IsOrdered(mark.written, clock);
    if (mark.read.block != clock.block) {
      mark.read = clock;
      mark.read_by_several_threads = mark.read_by_several_warps = false;
      continue;
    }
    mark.read_by_several_threads |= mark.read.thread != clock.thread;
    mark.read_by_several_warps |= mark.read.thread / kWarp != clock.thread / kWarp;
    mark.read.warp = std::max(mark.read.warp, clock.warp);
  }
  if (!is_written) return Access::kUnwritten;
  return is_ordered ? Access::kSound : Access::kRace;
}

Access SharedMemory::Write(uint64_t address, int64_t bytes, const Clock& clock) {
  bool is_ordered = true;
  for (size_t i = address; i < address + static_cast<uint64_t>(bytes); ++i) {
    Mark& mark = marks_[i];
    is_ordered &= IsOrdered(mark.written, clock) && !IsReadMeanwhile(mark, clock);
    mark.written = clock;
  }
  return is_ordered ? Access::kSound : Access::kRace;
}

}  // namespace ckplan::ptx
