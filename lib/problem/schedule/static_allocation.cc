#include "lib/problem/schedule/static_allocation.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/schedule/gradients_in_place.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

// Nothing is in place, so each version of a tensor counts, not each buffer.
Bytes OwnMemory(const TensorGraph& graph, const Timeline& timeline) {
  Bytes total;
  for (const Version& version : timeline.versions) total += graph.tensor(version.tensor).bytes;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.kind == BufferKind::kGradient) total += buffer.bytes;
  }
  return total;
}

Bytes OwnBuffers(const Timeline& timeline, const std::vector<int32_t>& taken_over) {
  Bytes total;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.kind == BufferKind::kWorkspace || taken_over[i] != kOwnMemory) continue;
    total += buffer.bytes;
  }
  return total;
}

// The reusable pieces of memory, each named by its tag.
class TagPool {
 public:
  size_t Take(Bytes bytes) {
    if (free_.empty()) {
      sizes_.push_back(bytes);
      return sizes_.size() - 1;
    }
    auto chosen = free_.lower_bound({bytes, 0});
    if (chosen == free_.end()) chosen = free_.lower_bound({free_.rbegin()->first, 0});
    const size_t tag = chosen->second;
    free_.erase(chosen);
    sizes_[tag] = std::max(sizes_[tag], bytes);
    return tag;
  }

  void Recycle(size_t tag) { free_.insert({sizes_[tag], tag}); }

  Bytes Total() const {
    Bytes total;
    for (const Bytes size : sizes_) total += size;
    return total;
  }

 private:
  std::vector<Bytes> sizes_;  // Size of the piece of each tag.
  std::set<std::pair<Bytes, size_t>> free_;
};

Bytes SharedMemory(const Timeline& timeline, const std::vector<int32_t>& taken_over) {
  struct Change {
    int64_t tick;
    size_t buffer;
    bool is_begin;
  };
  // Memory that is taken over stays in use until both lives have ended, because other gradients of
  // the same step may be computed from the old value. A buffer comes before those that take it
  // over.
  std::vector<bool> lives_on(timeline.buffers.size());
  std::vector<int64_t> end_of(timeline.buffers.size());
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    end_of[i] = timeline.buffers[i].end;
    if (taken_over[i] == kOwnMemory) continue;
    const auto old = static_cast<size_t>(taken_over[i]);
    lives_on[old] = true;
    end_of[i] = std::max(end_of[i], end_of[old]);
  }
  std::vector<Change> events;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.kind == BufferKind::kWorkspace || buffer.bytes == Bytes(0)) continue;
    events.push_back({buffer.begin, i, true});
    if (!lives_on[i]) events.push_back({end_of[i], i, false});
  }
  std::sort(events.begin(), events.end(),
            [](const Change& a, const Change& b) { return a.tick < b.tick; });  // Ticks are unique.
  TagPool pool;
  std::vector<size_t> tag_of(timeline.buffers.size());
  for (const Change& event : events) {
    PollStop();
    if (!event.is_begin) {
      pool.Recycle(tag_of[event.buffer]);
    } else if (taken_over[event.buffer] != kOwnMemory) {
      tag_of[event.buffer] = tag_of[static_cast<size_t>(taken_over[event.buffer])];
    } else {
      tag_of[event.buffer] = pool.Take(timeline.buffers[event.buffer].bytes);
    }
  }
  return pool.Total();
}

}  // namespace

Bytes StaticAllocation(const TensorGraph& graph, const Schedule& schedule, ArenaStrategy strategy) {
  const Timeline timeline = BuildTimeline(graph, schedule);
  if (strategy == ArenaStrategy::kNone) return OwnMemory(graph, timeline);
  const std::vector<int32_t> taken_over = GradientsInPlace(graph, schedule, timeline);
  return strategy == ArenaStrategy::kInplace ? OwnBuffers(timeline, taken_over)
                                             : SharedMemory(timeline, taken_over);
}

}  // namespace ckplan
