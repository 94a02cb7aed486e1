#include "lib/executor/cuda/testing/ptx/memory.h"

#include <algorithm>

namespace ckplan::ptx {

void TrafficCounter::SectorSet::Insert(uint64_t sector) {
  const uint64_t page = sector / kPageSectors;
  if (last_page_ == nullptr || page != last_) {
    last_page_ = &pages_[page];
    last_ = page;
  }
  uint64_t& word = (*last_page_)[sector % kPageSectors / 64];
  const uint64_t bit = uint64_t{1} << (sector % 64);
  size_ += (word & bit) == 0 ? 1 : 0;
  word |= bit;
}

void TrafficCounter::Add(const WarpAccess& access) {
  Traffic& traffic = access.is_read ? reads_ : writes_;
  SectorSet& all = access.is_read ? read_ : written_;
  std::array<uint64_t, kLanes> sectors{};
  size_t count = 0;
  for (size_t i = 0; i < access.threads; ++i) {
    const uint64_t sector = access.addresses[i] / kSectorBytes;
    // Neighbours usually access the same sector, so search from the newest.
    const auto begin = std::make_reverse_iterator(sectors.begin() + count);
    if (std::find(begin, sectors.rend(), sector) != sectors.rend()) continue;
    sectors[count++] = sector;
    all.Insert(sector);
  }
  traffic.bytes += access.bytes * static_cast<int64_t>(access.threads);
  traffic.sectors += static_cast<int64_t>(count);
}

namespace {

constexpr uint32_t kWarp = 32;
constexpr unsigned char kSharedPattern = 0xEE;  // Makes reads of unwritten memory stand out.

}  // namespace

void SharedMemory::StartBlock(uint32_t clock) {
  begin_ = clock;
  std::fill(bytes_.begin(), bytes_.end(), kSharedPattern);
}

// One thread's accesses are ordered. Two threads' accesses are ordered by a barrier that both
// passed in between.
bool SharedMemory::IsOrdered(const Clock& written, const Clock& now) const {
  if (written.block < begin_ || written.thread == now.thread || written.block < now.block) {
    return true;
  }
  const bool same_warp = written.thread / kWarp == now.thread / kWarp;
  return same_warp && written.warp < now.warp;
}

// True if another thread has read since the last barrier of both.
bool SharedMemory::IsReadMeanwhile(const Readers& readers, const Clock& now) {
  if (readers.block != now.block) return false;
  if (readers.are_of_several_warps) return true;
  const Reader& other = readers.last.thread == now.thread ? readers.other : readers.last;
  if (other.thread == kNoThread) return false;
  const bool same_warp = other.thread / kWarp == now.thread / kWarp;
  return !same_warp || other.warp_clock >= now.warp;
}

void SharedMemory::Add(const Clock& now, Readers& readers) {
  if (readers.block != now.block) {
    readers = {now.block, {now.thread, now.warp}, {}, false};
    return;
  }
  readers.are_of_several_warps |= readers.last.thread / kWarp != now.thread / kWarp;
  if (readers.last.thread != now.thread) readers.other = readers.last;
  readers.last = {now.thread, now.warp};
}

Access SharedMemory::Read(uint64_t address, int64_t bytes, const Clock& clock) {
  bool is_ordered = true;
  bool is_written = false;
  for (Mark& mark : MarksOf(address, bytes)) {
    // One written part is enough: structs are copied with their padding, which is never written.
    is_written |= mark.written.block >= begin_;
    is_ordered &= IsOrdered(mark.written, clock);
    Add(clock, mark.readers);
  }
  if (!is_written) return Access::kUnwritten;
  return is_ordered ? Access::kSound : Access::kRace;
}

Access SharedMemory::Write(uint64_t address, int64_t bytes, const Clock& clock) {
  bool is_ordered = true;
  for (Mark& mark : MarksOf(address, bytes)) {
    is_ordered &= IsOrdered(mark.written, clock) && !IsReadMeanwhile(mark.readers, clock);
    mark.written = clock;
  }
  return is_ordered ? Access::kSound : Access::kRace;
}

}  // namespace ckplan::ptx
