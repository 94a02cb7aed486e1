#include "lib/executor/cuda/ptx/traffic.h"

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
    // Mostly neighbours access the same sector, so the search begins at the newest.
    const auto begin = std::make_reverse_iterator(sectors.begin() + count);
    if (std::find(begin, sectors.rend(), sector) != sectors.rend()) continue;
    sectors[count++] = sector;
    all.Insert(sector);
  }
  traffic.bytes += access.bytes * static_cast<int64_t>(access.threads);
  traffic.sectors += static_cast<int64_t>(count);
}

}  // namespace ckplan::ptx
