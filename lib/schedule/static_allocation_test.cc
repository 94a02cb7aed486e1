#include "lib/schedule/static_allocation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

Schedule RandomSchedule(Rng& rng, const TensorGraph& graph) {
  KeptSet kept{IdVector<NodeId, bool>(graph.nodes().size())};
  for (const NodeId id : graph.nodes().ids()) kept.is_kept[id] = rng.Chance(50);
  return LowerStrategy(graph, kept);
}

// What the counter-and-tag algorithm computes, plainly: at each tick it asks all buffers and tags.
class NaiveSharing {
 public:
  explicit NaiveSharing(const Timeline& timeline) : buffers_(timeline.buffers) {
    tag_of_.resize(buffers_.size(), -1);
    int64_t last_tick = 0;
    for (const Buffer& buffer : buffers_) last_tick = std::max(last_tick, buffer.end);
    for (int64_t tick = 0; tick <= last_tick; ++tick) {
      for (size_t i = 0; i < buffers_.size(); ++i) {
        if (buffers_[i].kind == BufferKind::kWorkspace) continue;
        if (buffers_[i].begin == tick) Place(i, tick);
      }
      highest_ = std::max(highest_, LiveAt(tick));
    }
  }

  Bytes Total() const {
    Bytes total;
    for (const Bytes size : sizes_) total += size;
    return total;
  }
  Bytes highest() const { return highest_; }

 private:
  bool IsLive(size_t i, int64_t tick) const {
    return buffers_[i].begin <= tick && tick < buffers_[i].end;
  }
  Bytes LiveAt(int64_t tick) const {
    Bytes live;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].kind != BufferKind::kWorkspace && IsLive(i, tick)) live += buffers_[i].bytes;
    }
    return live;
  }
  bool IsFree(int tag, int64_t tick) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (tag_of_[i] == tag && IsLive(i, tick)) return false;
    }
    return true;
  }
  // Large enough beats too small; of those the smaller, of these the larger; then the older.
  bool IsBetter(int a, int b, Bytes bytes) const {
    const Bytes size_a = sizes_[static_cast<size_t>(a)];
    const Bytes size_b = sizes_[static_cast<size_t>(b)];
    if ((size_a >= bytes) != (size_b >= bytes)) return size_a >= bytes;
    return size_a >= bytes ? size_a < size_b : size_a > size_b;
  }
  void Place(size_t i, int64_t tick) {
    int best = -1;
    for (int tag = 0; tag < static_cast<int>(sizes_.size()); ++tag) {
      if (IsFree(tag, tick) && (best < 0 || IsBetter(tag, best, buffers_[i].bytes))) best = tag;
    }
    if (best < 0) {
      best = static_cast<int>(sizes_.size());
      sizes_.push_back(Bytes(0));
    }
    tag_of_[i] = best;
    Bytes& size = sizes_[static_cast<size_t>(best)];
    size = std::max(size, buffers_[i].bytes);
  }

  const std::vector<Buffer>& buffers_;
  std::vector<int> tag_of_;
  std::vector<Bytes> sizes_;
  Bytes highest_;
};

}  // namespace

// The gradients are those of c and b, then that of a, which takes over the memory of c's (2 bytes,
// grown to 4).
TEST_CASE("static allocation: a chain of three, by hand") {
  const TensorGraph graph = GraphFromText("a:4 -> b:4 -> c:2");
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)});
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kNone) == Bytes(20));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(20));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kSharing) == Bytes(18));
}

// b is written in place of a, which nobody reads again: backward of b reads b alone.
TEST_CASE("static allocation: in-place saves the output that takes over its input") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:4 -> c:2"));
  parts.nodes[NodeId(0)].backward_reads.clear();
  parts.nodes[NodeId(1)].backward_reads = {TensorId(1)};
  parts.nodes[NodeId(1)].in_place = {{TensorId(1), TensorId(0)}};
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)});
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kNone) == Bytes(20));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(16));
}

TEST_CASE("static allocation: each strategy needs no more than the one before, sharing the peak") {
  int in_place_saves = 0;
  int sharing_saves = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 12));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Schedule schedule = RandomSchedule(rng, graph);
    const Bytes none = StaticAllocation(graph, schedule, ArenaStrategy::kNone);
    const Bytes inplace = StaticAllocation(graph, schedule, ArenaStrategy::kInplace);
    const Bytes sharing = StaticAllocation(graph, schedule, ArenaStrategy::kSharing);
    CHECK(inplace <= none);
    CHECK(sharing <= inplace);
    const Timeline timeline = BuildTimeline(graph, schedule);
    const NaiveSharing naive(timeline);
    CHECK(sharing == naive.Total());
    CHECK(sharing >= naive.highest());
    in_place_saves += inplace < none;
    sharing_saves += sharing < inplace;
  }
  CHECK(in_place_saves > 100);
  CHECK(sharing_saves > 1000);
}

}  // namespace ckplan
