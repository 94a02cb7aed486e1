#include "lib/planning/algorithms/feng/feng.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"

namespace ckplan {

namespace {

// The shortest path to a position; without `length` if the position is unreachable.
struct Arrival {
  std::optional<Bytes> length;
  int32_t from = -1;
};

// The positions with an edge to the current one that fits the max term. The first one has the
// shortest path from 0; the others have longer paths or come later.
class Window {
 public:
  void Add(int32_t position, Bytes length) {
    while (!positions_.empty() && positions_.back().second > length) positions_.pop_back();
    positions_.push_back({position, length});
  }
  void DropBefore(int32_t position) {
    while (!positions_.empty() && positions_.front().first < position) positions_.pop_front();
  }
  const std::pair<int32_t, Bytes>* Shortest() const {
    return positions_.empty() ? nullptr : &positions_.front();
  }

 private:
  std::deque<std::pair<int32_t, Bytes>> positions_;
};

// passed[p] is the memory of all items before position p and of the vertices 1 to p.
std::vector<Bytes> MemoryPassed(const ChainItems& items) {
  std::vector<Bytes> passed = {Bytes(0)};
  for (size_t i = 0; i < items.memory.size(); ++i) {
    const Bytes vertex = i < items.vertices.size() ? items.vertices[i] : Bytes(0);
    passed.push_back(passed.back() + items.memory[i] + vertex);
  }
  return passed;
}

}  // namespace

std::optional<AccessiblePath> ShortestAccessiblePath(const ChainItems& items, Bytes max_term) {
  const std::vector<Bytes> passed = MemoryPassed(items);
  std::vector<Arrival> arrivals(passed.size());
  arrivals[0].length = Bytes(0);
  Window window;
  size_t nearest = 0;  // The first position from which an edge to the current one fits.
  for (size_t b = 1; b < passed.size(); ++b) {
    PollStop();
    if (arrivals[b - 1].length) window.Add(static_cast<int32_t>(b - 1), *arrivals[b - 1].length);
    const Bytes vertex = b <= items.vertices.size() ? items.vertices[b - 1] : Bytes(0);
    while (nearest < b && passed[b] - vertex - passed[nearest] > max_term) ++nearest;
    window.DropBefore(static_cast<int32_t>(nearest));
    Arrival& here = arrivals[b];
    if (const auto* shortest = window.Shortest()) {
      here = {shortest->second + vertex, shortest->first};
    } else if (items.divided[b - 1] && arrivals[b - 1].length) {
      here = {*arrivals[b - 1].length + *items.divided[b - 1] + vertex,
              static_cast<int32_t>(b - 1)};
    }
  }
  if (!arrivals.back().length) return std::nullopt;
  AccessiblePath path;
  path.kept = *arrivals.back().length;
  for (int32_t at = arrivals.back().from; at > 0; at = arrivals[static_cast<size_t>(at)].from) {
    path.stops.push_back(at);
  }
  std::reverse(path.stops.begin(), path.stops.end());
  return path;
}

CloseSetSolver::CloseSetSolver(const Problem& problem, TwoTerminalGraph graph, DivisionTree tree,
                               std::string class_name, const SolveLimits& limits)
    : problem_(problem),
      graph_(std::move(graph)),
      tree_(std::move(tree)),
      class_name_(std::move(class_name)),
      vertex_of_(problem.vertices.size()),
      min_kept_(tree_.close_sets.size()),
      stops_(tree_.close_sets.size()) {
  for (const VertexId v : graph_.vertices.ids()) {
    for (const NodeId node : graph_.vertices[v].nodes) vertex_of_[node] = v;
  }
  const Knob range = knob();
  best_ = FindBestMaxTerm(Bytes(range.min), Bytes(range.max), limits.stop,
                          [&](Bytes max_term) { return Divide(max_term).figures; });
}

Knob CloseSetSolver::knob() const {
  Bytes min_term;
  for (const CloseSet& set : tree_.close_sets) {
    if (set.kind == CloseSetKind::kUndivided) min_term = std::max(min_term, set.memory);
  }
  return {Knob::Kind::kLargestSegment, min_term.count(), close_set(0).memory.count(),
          best_.max_term.count()};
}

Result<SolveOutcome> CloseSetSolver::Solve(int64_t setting, const SolveLimits&) {
  const Division division = Divide(Bytes(setting));
  SolveOutcome outcome;
  if (division.is_sequence) {
    outcome.strategy = SequenceOf(division);
  } else {
    outcome.strategy = KeptSetOf(division);
  }
  outcome.paper.peak = division.figures.objective() + graph_.memory_aside;
  outcome.paper.overhead = OverheadOf(division);
  const bool is_best = Bytes(setting) == best_.max_term;
  outcome.is_optimal = !is_best || best_.is_proven;
  outcome.guarantee =
      !is_best ? fmt::format("the least kept memory for segments of at most {} bytes, among {}",
                             setting, class_name_)
      : best_.is_proven ? "optimal for Eq. 1 among " + class_name_
                        : std::string(kStoppedEarly) + "best found for Eq. 1 among " + class_name_;
  outcome.guarantee += AssumptionNote(division);
  return outcome;
}

// Computes min_kept_[S] for all S, children before parents.
void CloseSetSolver::ComputeMinKept(Bytes max_term) {
  for (size_t i = tree_.close_sets.size(); i-- > 0;) {
    PollStop();
    const CloseSet& set = tree_.close_sets[i];
    min_kept_[i] = Bytes(0);
    if (set.memory <= max_term || set.kind == CloseSetKind::kUndivided) continue;
    if (set.kind == CloseSetKind::kSplittable) {
      AccessiblePath path = PathThrough(set, max_term);
      min_kept_[i] = path.kept;
      stops_[i] = std::move(path.stops);
      continue;
    }
    for (const VertexId v : set.inner) min_kept_[i] += graph_.vertices[v].memory;
    for (const int32_t child : set.children) min_kept_[i] += min_kept_[static_cast<size_t>(child)];
  }
}

AccessiblePath CloseSetSolver::PathThrough(const CloseSet& set, Bytes max_term) const {
  ChainItems items;
  items.memory.reserve(set.children.size());
  items.divided.reserve(set.children.size());
  items.vertices.reserve(set.inner.size());
  for (const int32_t child : set.children) {
    items.memory.push_back(close_set(child).memory);
    const bool is_whole = close_set(child).kind == CloseSetKind::kUndivided;
    items.divided.push_back(is_whole ? std::nullopt
                                     : std::optional(min_kept_[static_cast<size_t>(child)]));
  }
  for (const VertexId v : set.inner) items.vertices.push_back(graph_.vertices[v].memory);
  std::optional<AccessiblePath> path = ShortestAccessiblePath(items, max_term);
  CKPLAN_CHECK(path.has_value(), "every undivided segment fits the smallest knob setting");
  return *std::move(path);
}

CloseSetSolver::Division CloseSetSolver::Divide(Bytes max_term) {
  ComputeMinKept(max_term);
  Division division;
  if (close_set(0).memory <= max_term) {
    division.figures.largest = close_set(0).memory;
    return division;
  }
  std::vector<int32_t> open = {0};
  while (!open.empty()) {
    const int32_t index = open.back();
    open.pop_back();
    const CloseSet& set = close_set(index);
    division.is_sequence &= index == 0 && set.kind == CloseSetKind::kSplittable;
    if (set.kind == CloseSetKind::kSplittable) {
      CutIntoRuns(index, max_term, division, open);
      continue;
    }
    division.kept.insert(division.kept.end(), set.inner.begin(), set.inner.end());
    for (size_t i = 0; i < set.children.size(); ++i) {
      if (close_set(set.children[i]).memory > max_term) {
        open.push_back(set.children[i]);
      } else {
        AddSegment({index, i, i + 1}, division);
      }
    }
  }
  for (const VertexId v : division.kept) division.figures.kept += graph_.vertices[v].memory;
  return division;
}

// Follows the shortest path: runs of children become segments, and single children that don't fit
// are divided.
void CloseSetSolver::CutIntoRuns(int32_t index, Bytes max_term, Division& division,
                                 std::vector<int32_t>& open) const {
  const CloseSet& set = close_set(index);
  std::vector<int32_t> stops = stops_[static_cast<size_t>(index)];
  for (const int32_t stop : stops) {
    division.kept.push_back(set.inner[static_cast<size_t>(stop) - 1]);
  }
  stops.push_back(static_cast<int32_t>(set.children.size()));
  size_t first = 0;
  for (const int32_t stop : stops) {
    const auto last = static_cast<size_t>(stop);
    const int32_t child = set.children[first];
    if (last == first + 1 && close_set(child).memory > max_term) {
      open.push_back(child);
    } else {
      AddSegment({index, first, last}, division);
    }
    first = last;
  }
}

void CloseSetSolver::AddSegment(Segment segment, Division& division) const {
  const CloseSet& set = close_set(segment.close_set);
  Bytes memory;
  for (size_t i = segment.first; i < segment.last; ++i) {
    memory += close_set(set.children[i]).memory;
    if (i > segment.first) memory += graph_.vertices[set.inner[i - 1]].memory;
  }
  division.figures.largest = std::max(division.figures.largest, memory);
  division.segments.push_back(segment);
}

std::vector<VertexId> CloseSetSolver::VerticesOf(const Segment& segment) const {
  const CloseSet& set = close_set(segment.close_set);
  std::vector<VertexId> vertices;
  for (size_t i = segment.first + 1; i < segment.last; ++i) vertices.push_back(set.inner[i - 1]);
  std::vector<int32_t> open;
  for (size_t i = segment.first; i < segment.last; ++i) open.push_back(set.children[i]);
  while (!open.empty()) {
    const CloseSet& inside = close_set(open.back());
    open.pop_back();
    vertices.insert(vertices.end(), inside.inner.begin(), inside.inner.end());
    open.insert(open.end(), inside.children.begin(), inside.children.end());
  }
  return vertices;
}

// Each kept vertex ends a segment: the vertices before it in topological order form a lower set.
LowerSetSequence CloseSetSolver::SequenceOf(const Division& division) const {
  std::vector<VertexId> closing = division.kept;
  closing.push_back(graph_.source());
  std::sort(closing.begin(), closing.end());
  if (graph_.is_virtual(graph_.source())) closing.erase(closing.begin());
  LowerSetSequence sequence;
  sequence.segment_of.resize(vertex_of_.size());
  for (const NodeId node : problem_.vertices.ids()) {
    int32_t& segment = sequence.segment_of[node];
    if (vertex_of_[node].is_none()) {
      for (const NodeId p : problem_.vertices.predecessors(node)) {
        segment = std::max(segment, sequence.segment_of[p]);
      }
    } else {
      const auto it = std::lower_bound(closing.begin(), closing.end(), vertex_of_[node]);
      segment = static_cast<int32_t>(it - closing.begin());
    }
    sequence.segment_count = std::max(sequence.segment_count, segment + 1);
  }
  return sequence;
}

// Keeps the segment whose backward comes first, because it would be recomputed at once. SequenceOf
// does the same.
KeptSet CloseSetSolver::KeptSetOf(const Division& division) const {
  std::vector<VertexId> last_segment;
  for (const Segment& segment : division.segments) {
    std::vector<VertexId> vertices = VerticesOf(segment);
    if (vertices.empty()) continue;
    const auto end = [](const auto& list) { return *std::max_element(list.begin(), list.end()); };
    if (last_segment.empty() || end(vertices) > end(last_segment))
      last_segment = std::move(vertices);
  }
  IdVector<VertexId, bool> is_kept(graph_.vertices.size());
  is_kept[graph_.source()] = true;
  is_kept[graph_.target()] = true;
  for (const VertexId v : division.kept) is_kept[v] = true;
  for (const VertexId v : last_segment) is_kept[v] = true;
  KeptSet kept;
  for (const NodeId node : problem_.vertices.ids()) {
    kept.is_kept.push_back(vertex_of_[node].is_none() || is_kept[vertex_of_[node]]);
  }
  return kept;
}

Cost CloseSetSolver::OverheadOf(const Division& division) const {
  IdVector<VertexId, bool> is_kept(graph_.vertices.size());
  is_kept[graph_.source()] = true;
  is_kept[graph_.target()] = true;
  for (const VertexId v : division.kept) is_kept[v] = true;
  Cost overhead;
  for (const NodeId node : problem_.vertices.ids()) {
    const VertexId v = vertex_of_[node];
    if (!v.is_none() && !is_kept[v]) overhead += problem_.vertices.time(node);
  }
  return overhead;
}

// Returns each vertex's segment, or -1 for kept vertices.
IdVector<VertexId, int32_t> CloseSetSolver::SegmentsOf(const Division& division) const {
  IdVector<VertexId, int32_t> segment_of(graph_.vertices.size(), -1);
  for (size_t i = 0; i < division.segments.size(); ++i) {
    for (const VertexId v : VerticesOf(division.segments[i])) {
      segment_of[v] = static_cast<int32_t>(i);
    }
  }
  return segment_of;
}

// Tells whether the node's backward reads inputs from several segments, which must then all be
// recomputed at once.
bool CloseSetSolver::NeedsSegmentsAtOnce(NodeId node,
                                         const IdVector<VertexId, int32_t>& segment_of) const {
  int32_t first = -1;
  for (const TensorId read : problem_.graph.node(node).backward_reads) {
    const NodeId producer = problem_.graph.tensor(read).producer;
    if (producer.is_none() || vertex_of_[producer].is_none()) continue;
    const int32_t segment = segment_of[vertex_of_[producer]];
    if (first >= 0 && segment >= 0 && segment != first) return true;
    if (segment >= 0) first = segment;
  }
  return false;
}

// Tells whether the paper's second assumption holds (ICLR version, section 4.1): the backward of an
// operation with several inputs does not read their values. Only then is Eq. 1 right where branches
// join.
std::string CloseSetSolver::AssumptionNote(const Division& division) const {
  if (division.segments.empty() || division.is_sequence) return "";
  const IdVector<VertexId, int32_t> segment_of = SegmentsOf(division);
  std::vector<NodeId> joins;
  for (const NodeId node : problem_.vertices.ids()) {
    const bool is_vertex = !vertex_of_[node].is_none();
    if (is_vertex && NeedsSegmentsAtOnce(node, segment_of)) joins.push_back(node);
  }
  if (joins.empty()) return "";
  // Name the node by its number, because a guarantee must not depend on node names.
  std::string which = fmt::format("node {}", problem_.graph.node(joins.front()).file_id);
  if (joins.size() > 1) which += fmt::format(" (and of {} more)", joins.size() - 1);
  return fmt::format(
      "; Eq. 1 counts one segment at a time, but the backward of {} reads inputs from several "
      "(Assumption 2 does not hold)",
      which);
}

Result<std::unique_ptr<PreparedSolver>> PrepareFengAcg(const Problem& problem,
                                                       const SolveLimits& limits) {
  TwoTerminalGraph graph = MakeTwoTerminal(problem.graph, problem.vertices);
  CKPLAN_ASSIGN_OR_RETURN(DivisionTree tree, DivideGraph(graph, limits.stop));
  return std::unique_ptr<PreparedSolver>(new CloseSetSolver(
      problem, std::move(graph), std::move(tree), "divisions into close sets", limits));
}

Result<std::unique_ptr<PreparedSolver>> PrepareFengLinear(const Problem& problem,
                                                          const SolveLimits& limits) {
  TwoTerminalGraph graph = MakeTwoTerminal(problem.graph, problem.vertices);
  DivisionTree tree = DivideAtSplittingVertices(graph);
  return std::unique_ptr<PreparedSolver>(new CloseSetSolver(
      problem, std::move(graph), std::move(tree), "checkpoints at splitting vertices", limits));
}

}  // namespace ckplan
