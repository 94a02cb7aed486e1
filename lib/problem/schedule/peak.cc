#include "lib/problem/schedule/peak.h"

#include <algorithm>
#include <utility>

namespace ckplan {
namespace {

// Returns the tick of the peak step at which memory use is highest. Buffers of earlier steps that
// are still live are there at all of its ticks, so only ticks at which a buffer begins matter.
int64_t PeakTick(const Timeline& timeline) {
  const auto step = static_cast<int32_t>(timeline.peak_step);
  std::vector<std::pair<int64_t, int64_t>> changes;  // Tick, bytes.
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.first_step > step || buffer.last_step < step) continue;
    changes.emplace_back(buffer.begin, buffer.bytes.count());
    changes.emplace_back(buffer.end, -buffer.bytes.count());
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].second;
    const bool is_last_of_tick = i + 1 == changes.size() || changes[i + 1].first > changes[i].first;
    if (is_last_of_tick && live == timeline.peak.count()) return changes[i].first;
  }
  return changes.empty() ? 0 : changes.front().first;
}

// What each buffer holds at the peak step: the last version made in it so far.
std::vector<int32_t> VersionsAtPeak(const Timeline& timeline) {
  std::vector<int32_t> versions(timeline.buffers.size(), -1);
  for (size_t v = 0; v < timeline.versions.size(); ++v) {
    const Version& version = timeline.versions[v];
    if (version.made_at > static_cast<int32_t>(timeline.peak_step)) break;
    versions[static_cast<size_t>(version.buffer)] = static_cast<int32_t>(v);
  }
  return versions;
}

}  // namespace

std::vector<PeakBuffer> FindPeakBuffers(const Timeline& timeline) {
  const std::vector<int32_t> versions = VersionsAtPeak(timeline);
  const int64_t tick = PeakTick(timeline);
  std::vector<PeakBuffer> live;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.bytes == Bytes(0) || buffer.begin > tick || tick >= buffer.end) continue;
    live.push_back({static_cast<int32_t>(i), versions[i]});
  }
  return live;
}

}  // namespace ckplan
