#include "lib/problem/schedule/static_allocation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

// Returns, for each gradient's buffer, the buffer whose memory it reuses, or -1. Checks all buffers
// that die at the gradient's step. It is valid for graphs without pass-through gradients, where
// every buffer that a backward step begins is a contribution to the gradient of an input.
class NaiveTakeovers {
 public:
  NaiveTakeovers(const TensorGraph& graph, const Schedule& schedule, const Timeline& timeline)
      : timeline_(timeline), taken_over_(timeline.buffers.size(), -1) {
    for (size_t i = 0; i < timeline.buffers.size(); ++i) {
      const Buffer& made = timeline.buffers[i];
      const Step& step = schedule.steps[static_cast<size_t>(made.first_step)];
      if (made.kind != BufferKind::kGradient || step.kind != StepKind::kBackward) continue;
      const Node& node = graph.node(step.node());
      const bool is_elementwise =
          std::any_of(node.in_place.begin(), node.in_place.end(),
                      [&](const InPlacePair& pair) { return pair.input == made.tensor; });
      if (is_elementwise) taken_over_[i] = Choose(node, made);
    }
  }

  const std::vector<int>& taken_over() const { return taken_over_; }

 private:
  int Choose(const Node& node, const Buffer& made) const {
    for (const InPlacePair& pair : node.in_place) {
      if (const int d = FindResult(pair.output, made); d >= 0) return d;
    }
    for (const InPlacePair& pair : node.in_place) {
      if (const int d = FindResult(pair.input, made); d >= 0) return d;
    }
    for (const InPlacePair& pair : node.in_place) {
      for (size_t d = 0; d < timeline_.buffers.size(); ++d) {
        const Buffer& buffer = timeline_.buffers[d];
        const bool is_gradient =
            buffer.kind == BufferKind::kGradient && buffer.tensor == pair.output;
        if (is_gradient && Fits(d, made)) return static_cast<int>(d);
      }
    }
    return -1;
  }
  int FindResult(TensorId tensor, const Buffer& made) const {
    for (const Version& version : timeline_.versions) {
      const bool is_dying = version.tensor == tensor && version.last_read == made.first_step;
      if (is_dying && Fits(static_cast<size_t>(version.buffer), made)) return version.buffer;
    }
    return -1;
  }
  bool Fits(size_t d, const Buffer& made) const {
    const Buffer& buffer = timeline_.buffers[d];
    return buffer.first_step < made.first_step && buffer.last_step == made.first_step &&
           buffer.bytes == made.bytes &&
           std::count(taken_over_.begin(), taken_over_.end(), static_cast<int>(d)) == 0;
  }

  const Timeline& timeline_;
  std::vector<int> taken_over_;
};

// The counter-and-tag algorithm in its simplest form: each tick visits all buffers and tags.
class NaiveSharing {
 public:
  NaiveSharing(const Timeline& timeline, const std::vector<int>& taken_over)
      : buffers_(timeline.buffers), taken_over_(taken_over) {
    tag_of_.resize(buffers_.size(), -1);
    int64_t last_tick = 0;
    for (const Buffer& buffer : buffers_) last_tick = std::max(last_tick, buffer.end);
    for (int64_t tick = 0; tick <= last_tick; ++tick) {
      for (size_t i = 0; i < buffers_.size(); ++i) {
        if (buffers_[i].kind == BufferKind::kWorkspace) continue;
        if (buffers_[i].begin == tick && buffers_[i].bytes > Bytes(0)) Place(i, tick);
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
  // Two buffers in the same memory count once.
  Bytes LiveAt(int64_t tick) const {
    Bytes live;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].kind == BufferKind::kWorkspace || !IsLive(i, tick)) continue;
      const int old = taken_over_[i];
      if (old < 0 || !IsLive(static_cast<size_t>(old), tick)) live += buffers_[i].bytes;
    }
    return live;
  }
  bool IsFree(int tag, int64_t tick) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (tag_of_[i] == tag && IsLive(i, tick)) return false;
    }
    return true;
  }
  // Large enough beats too small. The smaller of two large enough pieces wins, the larger of two
  // too small ones, then the older.
  bool IsBetter(int a, int b, Bytes bytes) const {
    const Bytes size_a = sizes_[static_cast<size_t>(a)];
    const Bytes size_b = sizes_[static_cast<size_t>(b)];
    if ((size_a >= bytes) != (size_b >= bytes)) return size_a >= bytes;
    return size_a >= bytes ? size_a < size_b : size_a > size_b;
  }
  int FreeTag(Bytes bytes, int64_t tick) {
    int best = -1;
    for (int tag = 0; tag < static_cast<int>(sizes_.size()); ++tag) {
      if (IsFree(tag, tick) && (best < 0 || IsBetter(tag, best, bytes))) best = tag;
    }
    if (best < 0) {
      best = static_cast<int>(sizes_.size());
      sizes_.push_back(Bytes(0));
    }
    return best;
  }
  void Place(size_t i, int64_t tick) {
    const int old = taken_over_[i];
    tag_of_[i] = old >= 0 ? tag_of_[static_cast<size_t>(old)] : FreeTag(buffers_[i].bytes, tick);
    Bytes& size = sizes_[static_cast<size_t>(tag_of_[i])];
    size = std::max(size, buffers_[i].bytes);
  }

  const std::vector<Buffer>& buffers_;
  const std::vector<int>& taken_over_;
  std::vector<int> tag_of_;
  std::vector<Bytes> sizes_;
  Bytes highest_;
};

// Fig. 1 of the paper: two fully connected layers with a sigmoid between them; the softmax is the
// loss. The batch needs a gradient, as in the figure.
//
//   x:2 -> h:4 (fullc) -> s:4 (sigmoid, in place of h, backward reads s) -> o:2 (fullc)
TensorGraph TwoLayers() {
  TensorGraphParts parts = PartsOf(GraphFromText("x:2 -> h:4 -> s:4 -> o:2"));
  const TensorId x(0), h(1), s(2);
  parts.tensors[x].kind = TensorKind::kInput;
  IdVector<NodeId, Node> nodes;
  for (const NodeId id : {NodeId(1), NodeId(2), NodeId(3)}) nodes.push_back(parts.nodes[id]);
  parts.nodes = std::move(nodes);
  parts.nodes[NodeId(0)].backward_reads = {x};
  parts.nodes[NodeId(1)].backward_reads = {s};
  parts.nodes[NodeId(1)].in_place = {{s, h}};
  parts.nodes[NodeId(2)].backward_reads = {s};
  return *TensorGraph::Create(std::move(parts));
}

}  // namespace

// The gradients are those of c, b and a. The gradient of a reuses the memory of c's, which
// grows from 2 to 4 bytes.
TEST_CASE("static allocation: a chain of three, by hand") {
  const TensorGraph graph = GraphFromText("a:4 -> b:4 -> c:2");
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)});
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kNone) == Bytes(20));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(20));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kSharing) == Bytes(18));
  // a, b and the gradient of b conflict with all others; c has the colour of a's gradient.
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kColoring) == Bytes(18));
}

// b is written in place of a, which is not read again: the backward of b reads only b.
TEST_CASE("static allocation: in-place saves the memory of an output that takes over its input") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:4 -> c:2"));
  parts.nodes[NodeId(0)].backward_reads.clear();
  parts.nodes[NodeId(1)].backward_reads = {TensorId(1)};
  parts.nodes[NodeId(1)].in_place = {{TensorId(1), TensorId(0)}};
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)});
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kNone) == Bytes(20));
  // b is not read after its own backward either, so the gradient of a lies there.
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(12));
}

// Without optimization: h, s, o and the gradients of o, s, h and x take 4 + 4 + 2 + 2 + 4 + 4 + 2 =
// 22. In place: the sigmoid is written over h, 18, and its backward writes the gradient of h there
// too, 14. Sharing: the loss is the last to read o, so the gradient of s takes the tag of o, which
// grows to 4 bytes, and "the storage of the softmax gradient is shared with the gradient by the
// first fully connected layer": the gradients of o and x have one tag of 2 bytes. 4 + 4 + 2 = 10.
TEST_CASE("static allocation: the two layers of Fig. 1, by hand") {
  const TensorGraph graph = TwoLayers();
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)});
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kNone) == Bytes(22));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(14));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kSharing) == Bytes(10));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kColoring) == Bytes(10));
}

TEST_CASE("static allocation: with explicit frees nothing is in place") {
  const TensorGraph graph = TwoLayers();
  const NodeId h(0), s(1), o(2);
  const Schedule schedule{{Step::Forward(h), Step::Forward(s), Step::Forward(o), Step::Loss(),
                           Step::Free(TensorId(3)), Step::Backward(o), Step::Backward(s),
                           Step::Free(TensorId(2)), Step::Free(TensorId(1)), Step::Backward(h)},
                          FreePolicy::kExplicit};
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(22));
}

// a and b of 4 bytes are multiplied; backward reads both. If nothing else reads them after that,
// each of their gradients takes over one of them: c, its gradient, a and b make 16. If the backward
// of a and of b reads them too, only the gradient of c dies, and one of the two gradients takes it
// over; the other needs a fifth piece of 4 bytes.
TEST_CASE("static allocation: a product's gradients in place of its factors, or of one gradient") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4; b:4 -> c:4; a -> c"));
  const TensorId a(0), b(1), c(2);
  parts.nodes[NodeId(2)].backward_reads = {a, b};
  parts.nodes[NodeId(2)].in_place = {{c, a}, {c, b}};
  const auto needs = [](const TensorGraphParts& of, ArenaStrategy strategy) {
    const TensorGraph graph = *TensorGraph::Create(TensorGraphParts(of));
    return StaticAllocation(graph, KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)}), strategy);
  };
  CHECK(needs(parts, ArenaStrategy::kNone) == Bytes(24));
  CHECK(needs(parts, ArenaStrategy::kInplace) == Bytes(20));
  parts.nodes[NodeId(0)].backward_reads.clear();
  parts.nodes[NodeId(1)].backward_reads.clear();
  CHECK(needs(parts, ArenaStrategy::kInplace) == Bytes(16));
}

// s = a + r, where r is the relu of a, which reads r in its backward. The gradient of s passes
// through to a and r. The contribution of the relu to the gradient of a needs a piece of its own.
// The gradient of s is shared by then, so the sum needs one too: a, r, s, and the gradient of s,
// the contribution and the sum make 24. In place, the contribution lies in r: 20. Sharing: a dies
// when s is made, and its tag goes to the gradient of s; s dies at the loss, and its tag goes to
// the sum: 12.
TEST_CASE("static allocation: a contribution to a gradient in place of what it is computed from") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> r:4 -> s:4; a -> s"));
  const TensorId a(0), r(1);
  parts.nodes[NodeId(0)].backward_reads.clear();
  parts.nodes[NodeId(1)].backward_reads = {r};
  parts.nodes[NodeId(1)].in_place = {{r, a}};
  parts.nodes[NodeId(2)].backward_reads.clear();
  parts.nodes[NodeId(2)].gradient_passthrough = {a, r};
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2)});
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kNone) == Bytes(24));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kInplace) == Bytes(20));
  CHECK(StaticAllocation(graph, schedule, ArenaStrategy::kSharing) == Bytes(12));
}

Bytes PredictionNeeds(const TensorGraph& graph, ArenaStrategy strategy) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return StaticAllocation(PredictionGraph(graph), KeepAllSchedule(order), strategy);
}

// Any number of equal layers needs two results of 4 bytes: the one that is read and the one that is
// made. The 8 bytes that the second layer saves for its backward are not made.
TEST_CASE("static allocation: the prediction of a chain needs two layers with sharing") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:4 -> c:4 -> d:4 -> e:4 -> f:4"));
  Tensor statistic = parts.tensors[TensorId(1)];
  statistic.file_id = 6;
  statistic.kind = TensorKind::kStatistic;
  statistic.bytes = Bytes(8);
  const TensorId saved = parts.tensors.push_back(statistic);
  parts.nodes[NodeId(1)].outputs.push_back(saved);
  parts.nodes[NodeId(1)].backward_reads.push_back(saved);
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  CHECK(PredictionNeeds(graph, ArenaStrategy::kNone) == Bytes(24));
  CHECK(PredictionNeeds(graph, ArenaStrategy::kInplace) == Bytes(24));
  CHECK(PredictionNeeds(graph, ArenaStrategy::kSharing) == Bytes(8));
}

// b and c are sigmoids, of the batch and of b; f and e poolings of b and c; g is the product of f
// and e. c cannot be written in place of b, which f is still to read. e takes the tag of b, and g
// is written in place of f: 5 results, of which one is in place and one shares, 4 bytes each.
TEST_CASE("static allocation: a prediction with branches, by hand") {
  TensorGraphParts parts =
      PartsOf(GraphFromText("b:4 -> c:4; b -> f:4; c -> e:4; f -> g:4; e -> g"));
  const TensorId b(0), c(1), f(2), e(3), g(4);
  parts.nodes[NodeId(1)].in_place = {{c, b}};
  parts.nodes[NodeId(4)].in_place = {{g, f}, {g, e}};
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  CHECK(PredictionNeeds(graph, ArenaStrategy::kNone) == Bytes(20));
  CHECK(PredictionNeeds(graph, ArenaStrategy::kInplace) == Bytes(16));
  CHECK(PredictionNeeds(graph, ArenaStrategy::kSharing) == Bytes(12));
}

TEST_CASE(
    "static allocation: each strategy needs no more than the last, and sharing at least the peak") {
  int in_place_saves = 0;
  int gradients_in_place = 0;
  int sharing_saves = 0;
  int coloring_saves = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 12));
    if (seed % 2 == 0) options.gradient_passthrough = 0;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Schedule schedule = LowerStrategy(graph, RandomKeptSet(rng, graph));
    const Bytes none = StaticAllocation(graph, schedule, ArenaStrategy::kNone);
    const Bytes inplace = StaticAllocation(graph, schedule, ArenaStrategy::kInplace);
    const Bytes sharing = StaticAllocation(graph, schedule, ArenaStrategy::kSharing);
    CHECK(inplace <= none);
    CHECK(sharing <= inplace);
    const Bytes coloring = StaticAllocation(graph, schedule, ArenaStrategy::kColoring);
    CHECK(coloring <= inplace);
    coloring_saves += coloring < sharing;
    in_place_saves += inplace < none;
    sharing_saves += sharing < inplace;
    if (options.gradient_passthrough > 0) continue;

    const Timeline timeline = BuildTimeline(graph, schedule);
    const NaiveTakeovers takeovers(graph, schedule, timeline);
    const NaiveSharing naive(timeline, takeovers.taken_over());
    CHECK(sharing == naive.Total());
    CHECK(sharing >= naive.highest());
    CHECK(coloring >= naive.highest());
    Bytes own_memory;
    for (size_t i = 0; i < timeline.buffers.size(); ++i) {
      const bool is_counted = timeline.buffers[i].kind != BufferKind::kWorkspace;
      if (is_counted && takeovers.taken_over()[i] < 0) own_memory += timeline.buffers[i].bytes;
      gradients_in_place += takeovers.taken_over()[i] >= 0;
    }
    CHECK(inplace == own_memory);
  }
  CHECK(in_place_saves > 200);
  CHECK(gradients_in_place > 200);
  CHECK(sharing_saves > 2000);
  CHECK(coloring_saves > 200);
}

}  // namespace ckplan
