#include "lib/schedule/static_allocation.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/schedule/timeline.h"

namespace ckplan {
namespace {

// Without in-place: every version of a tensor counts, not every buffer.
Bytes OwnMemory(const TensorGraph& graph, const Timeline& timeline) {
  Bytes total;
  for (const Version& version : timeline.versions) total += graph.tensor(version.tensor).bytes;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.kind == BufferKind::kGradient) total += buffer.bytes;
  }
  return total;
}

Bytes OwnBuffers(const Timeline& timeline) {
  Bytes total;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.kind != BufferKind::kWorkspace) total += buffer.bytes;
  }
  return total;
}

// The pieces of memory that are used again and again, each known by its tag.
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
  std::vector<Bytes> sizes_;  // The size of each tag's piece.
  std::set<std::pair<Bytes, size_t>> free_;
};

Bytes SharedMemory(const Timeline& timeline) {
  struct Event {
    int64_t tick;
    size_t buffer;
    bool is_begin;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    if (timeline.buffers[i].kind == BufferKind::kWorkspace) continue;
    events.push_back({timeline.buffers[i].begin, i, true});
    events.push_back({timeline.buffers[i].end, i, false});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.tick < b.tick; });  // Ticks are unique.
  TagPool pool;
  std::vector<size_t> tag_of(timeline.buffers.size());
  for (const Event& event : events) {
    PollStop();
    if (event.is_begin) {
      tag_of[event.buffer] = pool.Take(timeline.buffers[event.buffer].bytes);
    } else {
      pool.Recycle(tag_of[event.buffer]);
    }
  }
  return pool.Total();
}

}  // namespace

Bytes StaticAllocation(const TensorGraph& graph, const Schedule& schedule, ArenaStrategy strategy) {
  const Timeline timeline = BuildTimeline(graph, schedule);
  switch (strategy) {
    case ArenaStrategy::kNone:
      return OwnMemory(graph, timeline);
    case ArenaStrategy::kInplace:
      return OwnBuffers(timeline);
    case ArenaStrategy::kSharing:
      return SharedMemory(timeline);
  }
  return Bytes();
}

}  // namespace ckplan
