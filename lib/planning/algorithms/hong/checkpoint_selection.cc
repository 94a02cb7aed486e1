#include "lib/planning/algorithms/hong/checkpoint_selection.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <queue>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

namespace {

void Append(LayerList* list, Bytes size, NodeId node, bool is_candidate) {
  if (is_candidate) list->candidates.push_back(list->sizes.size());
  list->sizes.push_back(size);
  list->nodes.push_back(node);
}

}  // namespace

LayerList ListLayers(const TensorGraph& graph, const VertexGraph& vertices) {
  const Chain chain = FindChain(graph, vertices);
  const Bytes inputs = graph.constants().inputs;
  LayerList list;
  // Nodes of a block are adjacent in the list, with its splitting vertex last.
  std::vector<std::vector<NodeId>> blocks(static_cast<size_t>(chain.block_count));
  for (const NodeId v : vertices.ids()) {
    blocks[static_cast<size_t>(chain.block_of[v])].push_back(v);
  }
  // The first vertex is d_0 if it is a block of its own. Otherwise its block also contains nodes
  // that read it and have no gradient, which come before it in the list.
  const bool begins_with_vertex = inputs == Bytes(0) && !chain.splitting.empty() &&
                                  blocks.front() == std::vector{chain.splitting.front()};
  if (!begins_with_vertex) Append(&list, inputs, NodeId(), true);
  for (size_t block = 0; block < blocks.size(); ++block) {
    const NodeId end = block < chain.splitting.size() ? chain.splitting[block] : NodeId();
    for (const NodeId v : blocks[block]) {
      if (v != end) Append(&list, vertices.memory(v), v, false);
    }
    if (!end.is_none()) Append(&list, vertices.memory(end), end, true);
  }
  if (list.candidates.back() + 1 != list.sizes.size()) Append(&list, Bytes(0), NodeId(), true);
  return list;
}

IdVector<NodeId, int32_t> LayerList::Cut(const std::vector<size_t>& checkpoints,
                                         int32_t* segment_count) const {
  size_t node_count = 0;
  for (const NodeId v : nodes) node_count += v.is_none() ? 0 : 1;
  IdVector<NodeId, int32_t> segment_of(node_count);
  int32_t segment = 0;
  bool is_open = false;
  size_t next = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].is_none()) {
      segment_of[nodes[i]] = segment;
      is_open = true;
    }
    if (next < checkpoints.size() && checkpoints[next] == i) {
      ++next;
      if (is_open) ++segment;
      is_open = false;
    }
  }
  *segment_count = segment + (is_open ? 1 : 0);
  return segment_of;
}

Cost LayerList::RecomputedTime(const VertexGraph& vertices,
                               const std::vector<size_t>& checkpoints) const {
  Cost time = vertices.total_time();
  for (const size_t i : checkpoints) {
    if (!nodes[i].is_none()) time -= vertices.time(nodes[i]);
  }
  return time;
}

namespace {

// sums[i] is d_0 + ... + d_{i-1}.
std::vector<Bytes> PrefixSums(const LayerList& list) {
  std::vector<Bytes> sums = {Bytes(0)};
  for (const Bytes size : list.sizes) sums.push_back(sums.back() + size);
  return sums;
}

// Follows `next` from the first checkpoint to the last.
std::vector<size_t> TraceCheckpoints(const LayerList& list, const std::vector<size_t>& next) {
  std::vector<size_t> positions;
  for (size_t c = 0;; c = next[c]) {
    positions.push_back(list.candidates[c]);
    if (c + 1 == list.candidates.size()) return positions;
  }
}

// Returns the checkpoints with the least memory such that no segment exceeds `limit`, or nothing
// (Eq. 7 and 8). The queue holds the candidates within reach by position, with ascending memory.
std::optional<std::vector<size_t>> MinCheckpoints(const LayerList& list,
                                                  const std::vector<Bytes>& sums, Bytes limit) {
  const std::vector<size_t>& candidates = list.candidates;
  std::vector<Bytes> memory(candidates.size());
  std::vector<size_t> before(candidates.size());
  std::deque<size_t> queue;
  memory[0] = list.sizes[candidates[0]];
  queue.push_back(0);
  for (size_t c = 1; c < candidates.size(); ++c) {
    PollStop();
    const auto segment = [&](size_t from) {
      return sums[candidates[c]] - sums[candidates[from] + 1];
    };
    while (!queue.empty() && segment(queue.front()) > limit) queue.pop_front();
    if (queue.empty()) return std::nullopt;
    before[c] = queue.front();
    memory[c] = memory[before[c]] + list.sizes[candidates[c]];
    while (!queue.empty() && memory[queue.back()] >= memory[c]) queue.pop_back();
    queue.push_back(c);
  }
  std::vector<size_t> positions;
  for (size_t c = candidates.size() - 1;; c = before[c]) {
    positions.push_back(candidates[c]);
    if (c == 0) break;
  }
  std::reverse(positions.begin(), positions.end());
  return positions;
}

struct StaticParts {
  Bytes checkpoints;
  Bytes segment;  // The largest segment.
};

StaticParts PartsOfStatic(const LayerList& list, const std::vector<Bytes>& sums,
                          const std::vector<size_t>& checkpoints) {
  StaticParts parts;
  for (size_t k = 0; k < checkpoints.size(); ++k) {
    parts.checkpoints += list.sizes[checkpoints[k]];
    if (k == 0) continue;
    parts.segment = std::max(parts.segment, sums[checkpoints[k]] - sums[checkpoints[k - 1] + 1]);
  }
  return parts;
}

// Minimises Eq. 6 over all limits. A solution covers every limit from its own largest segment up to
// the next solution, and smaller limits never need less checkpoint memory. So between two solved
// limits, every other solution costs at least the checkpoint memory of the upper one plus the lower
// limit plus one byte. The search skips gaps in which that is no gain.
class StaticSearch {
 public:
  StaticSearch(const LayerList& list, const std::vector<Bytes>& sums) : list_(list), sums_(sums) {
    Bytes least;  // The least limit with a solution: every candidate is a checkpoint.
    for (size_t c = 1; c < list.candidates.size(); ++c) {
      least = std::max(least, sums[list.candidates[c]] - sums[list.candidates[c - 1] + 1]);
    }
    const StaticParts at_most = Solve(sums.back());
    const StaticParts at_least = Solve(least);
    AddGap({least, at_most.segment, at_least.checkpoints, at_most.checkpoints});
  }

  // Ties count as open, because the largest limit is preferred among equally good solutions.
  bool HasNext() const {
    if (gaps_.empty()) return false;
    const Bytes bound = gaps_.top().bound();
    return bound < best_.objective || (bound == best_.objective && gaps_.top().low >= segment_);
  }

  void HalveNext() {
    const Gap gap = gaps_.top();
    gaps_.pop();
    const Bytes middle = gap.low + Bytes((gap.high - gap.low).count() / 2);
    const StaticParts found = Solve(middle);
    AddGap({middle, gap.high, found.checkpoints, gap.kept_high});
    AddGap({gap.low, found.segment, gap.kept_low, found.checkpoints});
  }

  Checkpoints Best(bool is_proven) && {
    best_.is_proven = is_proven;
    return std::move(best_);
  }

 private:
  // The limits between two solved ones; `high` is the largest segment of the upper solution.
  struct Gap {
    Bytes low;
    Bytes high;
    Bytes kept_low;
    Bytes kept_high;
    Bytes bound() const { return kept_high + low + Bytes(1); }
    bool operator<(const Gap& other) const {
      return std::pair(bound(), other.low) > std::pair(other.bound(), low);
    }
  };

  // If both ends keep the same, the lower one is better than all limits in between.
  void AddGap(const Gap& gap) {
    if (gap.low + Bytes(1) < gap.high && gap.kept_low != gap.kept_high) gaps_.push(gap);
  }

  StaticParts Solve(Bytes limit) {
    std::vector<size_t> positions = *MinCheckpoints(list_, sums_, limit);
    const StaticParts parts = PartsOfStatic(list_, sums_, positions);
    const Bytes objective = parts.checkpoints + parts.segment;
    if (objective < best_.objective || (objective == best_.objective && parts.segment > segment_)) {
      best_ = {std::move(positions), objective};
      segment_ = parts.segment;
    }
    return parts;
  }

  const LayerList& list_;
  const std::vector<Bytes>& sums_;
  std::priority_queue<Gap> gaps_;  // Smallest bound on top; among equal bounds, the largest
                                   // limits.
  Checkpoints best_{{}, Bytes::Max()};
  Bytes segment_;  // The largest segment of the best solution.
};

// Tracks the maximum of d_k over i <= k < j while i moves down from the end. The stack holds the
// positions k where d_k is larger than all d between i and k.
class RecordMaxima {
 public:
  explicit RecordMaxima(const std::vector<Bytes>& sizes) : sizes_(sizes) {}

  void MoveTo(size_t i) {
    while (!stack_.empty() && sizes_[stack_.back()] <= sizes_[i]) stack_.pop_back();
    stack_.push_back(i);
  }
  // Returns the maximum of [i, j): the last record before j.
  Bytes Before(size_t j) const {
    const auto it = std::partition_point(stack_.begin(), stack_.end(),
                                         [&](size_t position) { return position >= j; });
    return sizes_[*it];
  }

 private:
  const std::vector<Bytes>& sizes_;
  std::vector<size_t> stack_;  // From bottom to top, positions and sizes descend.
};

}  // namespace

Bytes StaticObjective(const LayerList& list, const std::vector<size_t>& checkpoints) {
  const StaticParts parts = PartsOfStatic(list, PrefixSums(list), checkpoints);
  return parts.checkpoints + parts.segment;
}

Bytes DynamicObjective(const LayerList& list, const std::vector<size_t>& checkpoints) {
  Bytes kept = list.sizes[checkpoints.front()];
  Bytes highest = kept;  // The value for a list of one element.
  for (size_t k = 1; k < checkpoints.size(); ++k) {
    kept += list.sizes[checkpoints[k]];
    Bytes segment;
    Bytes largest = list.sizes[checkpoints[k - 1]];
    for (size_t i = checkpoints[k - 1] + 1; i < checkpoints[k]; ++i) {
      segment += list.sizes[i];
      largest = std::max(largest, list.sizes[i]);
    }
    highest = std::max(highest, kept + segment + largest);
  }
  return highest;
}

Result<Checkpoints> SelectStatic(const LayerList& list, std::stop_token stop) {
  if (stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  const std::vector<Bytes> sums = PrefixSums(list);
  StaticSearch search(list, sums);
  while (search.HasNext()) {
    if (stop.stop_requested()) return std::move(search).Best(/*is_proven=*/false);
    search.HalveNext();
  }
  return std::move(search).Best(/*is_proven=*/true);
}

Result<Checkpoints> SelectDynamic(const LayerList& list, std::stop_token stop) {
  const std::vector<Bytes> sums = PrefixSums(list);
  const std::vector<size_t>& candidates = list.candidates;
  const size_t last = candidates.size() - 1;
  std::vector<Bytes> memory(candidates.size(), Bytes::Max());  // M(i) of Eq. 13.
  std::vector<size_t> next(candidates.size(), last);
  memory[last] = list.sizes[candidates[last]];
  for (size_t c = last; c-- > 0;) {
    if (stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
    const size_t i = candidates[c];
    Bytes largest = list.sizes[i];
    for (size_t n = c + 1; n <= last; ++n) {
      const size_t j = candidates[n];
      for (size_t k = candidates[n - 1] + 1; k < j; ++k) {
        largest = std::max(largest, list.sizes[k]);
      }
      const Bytes u = sums[j + 1] - sums[i + 1] + largest;  // U(i, j) = s(i, j) + d_j
      const Bytes value = list.sizes[i] + std::max(memory[n], u);
      if (value < memory[c]) {
        memory[c] = value;
        next[c] = n;
      }
      largest = std::max(largest, list.sizes[j]);
    }
  }
  return Checkpoints{TraceCheckpoints(list, next), memory[0]};
}

Checkpoints SelectDynamicLinear(const LayerList& list) {
  const std::vector<Bytes> sums = PrefixSums(list);
  const std::vector<size_t>& candidates = list.candidates;
  const size_t last = candidates.size() - 1;
  std::vector<Bytes> memory(candidates.size());  // M(i) of Eq. 13.
  std::vector<size_t> next(candidates.size(), last);
  memory[last] = list.sizes[candidates[last]];
  RecordMaxima records(list.sizes);
  // Q, stored with its front at the back of the vector: towards the front, positions rise and M
  // falls.
  std::vector<size_t> queue = {last};
  size_t at = 0;  // The position of j* in the queue.
  size_t seen = candidates[last];
  for (size_t c = last; c-- > 0;) {
    PollStop();
    const size_t i = candidates[c];
    while (seen > i) records.MoveTo(--seen);
    const auto u = [&](size_t n) {
      const size_t j = candidates[n];
      return sums[j + 1] - sums[i + 1] + records.Before(j);
    };
    while (u(queue[at]) >= memory[queue[at]] && at + 1 < queue.size()) ++at;
    const auto value = [&](size_t place) {
      return list.sizes[i] + std::max(memory[queue[place]], u(queue[place]));
    };
    // "j + 1" in line 13 means the next element of Q, not the next index.
    if (at > 0 && value(at - 1) <= value(at)) --at;
    memory[c] = value(at);
    next[c] = queue[at];
    while (!queue.empty() && memory[queue.back()] >= memory[c]) queue.pop_back();
    // If j* has left Q, continue from its nearest survivor.
    at = queue.empty() ? 0 : std::min(at, queue.size() - 1);
    queue.push_back(c);
  }
  return {TraceCheckpoints(list, next), memory[0]};
}

}  // namespace ckplan
