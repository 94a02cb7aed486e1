#include "lib/problem/graph/max_flow.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

constexpr int32_t kNone = -1;

template <typename T>
auto& At(std::vector<T>& list, int32_t i) {
  return list[static_cast<size_t>(i)];
}

}  // namespace

MaxFlow::MaxFlow(int32_t node_count)
    : node_count_(node_count), terminals_(static_cast<size_t>(node_count), Terminal::kNone) {}

int32_t MaxFlow::AddArc(int32_t from, int32_t to, int64_t capacity) {
  is_built_ = false;
  tails_.push_back(from);
  heads_.push_back(to);
  capacities_.push_back(capacity);
  return static_cast<int32_t>(tails_.size()) - 1;
}

void MaxFlow::SetCapacity(int32_t arc, int64_t capacity) { At(capacities_, arc) = capacity; }

void MaxFlow::SetTerminal(int32_t node, Terminal terminal) { At(terminals_, node) = terminal; }

// Groups the arcs by their tail.
void MaxFlow::Build() {
  if (is_built_) return;
  is_built_ = true;
  const auto nodes = static_cast<size_t>(node_count_);
  first_.assign(nodes + 2, 0);
  for (size_t i = 0; i < tails_.size(); ++i) {
    ++first_[static_cast<size_t>(tails_[i]) + 2];
    ++first_[static_cast<size_t>(heads_[i]) + 2];
  }
  for (size_t x = 2; x < first_.size(); ++x) first_[x] += first_[x - 1];
  arcs_.resize(2 * tails_.size());
  positions_.resize(tails_.size());
  for (size_t i = 0; i < tails_.size(); ++i) {
    const int32_t forward = first_[static_cast<size_t>(tails_[i]) + 1]++;
    const int32_t backward = first_[static_cast<size_t>(heads_[i]) + 1]++;
    At(arcs_, forward) = {heads_[i], backward, 0};
    At(arcs_, backward) = {tails_[i], forward, 0};
    positions_[i] = forward;
  }
  first_.pop_back();
  for (auto* list : {&labels_, &level_next_, &level_previous_, &active_next_}) list->resize(nodes);
  for (auto* list : {&level_first_, &active_first_}) list->resize(nodes + 1);
}

void MaxFlow::Reset() {
  for (Arc& arc : arcs_) arc.residual = 0;
  for (size_t i = 0; i < positions_.size(); ++i) {
    At(arcs_, positions_[i]).residual += capacities_[i];
  }
  excess_.assign(static_cast<size_t>(node_count_), 0);
  work_ += static_cast<int64_t>(arcs_.size());
}

void MaxFlow::SpreadTerminals() {
  roles_ = terminals_;
  std::vector<int32_t> sources;
  std::vector<int32_t> sinks;
  for (int32_t node = 0; node < node_count_; ++node) {
    if (At(roles_, node) == Terminal::kSource) sources.push_back(node);
    if (At(roles_, node) == Terminal::kSink) sinks.push_back(node);
  }
  Spread(std::move(sources), Terminal::kSource);
  Spread(std::move(sinks), Terminal::kSink);
}

void MaxFlow::Spread(std::vector<int32_t> nodes, Terminal terminal) {
  while (!nodes.empty()) {
    const int32_t node = nodes.back();
    nodes.pop_back();
    for (int32_t i = At(first_, node); i < At(first_, node + 1); ++i) {
      const Arc& arc = At(arcs_, i);
      const int64_t capacity =
          terminal == Terminal::kSource ? arc.residual : At(arcs_, arc.mate).residual;
      if (capacity < kInfinite || At(roles_, arc.head) == terminal) continue;
      CKPLAN_CHECK(At(roles_, arc.head) == Terminal::kNone,
                   "no path of infinite arcs leads from a source to a sink");
      At(roles_, arc.head) = terminal;
      nodes.push_back(arc.head);
    }
  }
}

void MaxFlow::SaturateSources() {
  for (int32_t node = 0; node < node_count_; ++node) {
    if (At(roles_, node) != Terminal::kSource) continue;
    for (int32_t i = At(first_, node); i < At(first_, node + 1); ++i) {
      Arc& arc = At(arcs_, i);
      if (At(roles_, arc.head) == Terminal::kSource) continue;
      At(excess_, arc.head) += arc.residual;
      At(arcs_, arc.mate).residual += std::exchange(arc.residual, 0);
    }
  }
}

int64_t MaxFlow::Solve() {
  Build();
  Reset();
  SpreadTerminals();
  SaturateSources();
  MoveExcessTo(Terminal::kSink);
  int64_t flow = 0;
  for (int32_t node = 0; node < node_count_; ++node) {
    if (At(roles_, node) == Terminal::kSink) flow += At(excess_, node);
  }
  return flow;
}

std::vector<bool> MaxFlow::LargestSourceSide() {
  RelabelAll(Terminal::kSink);  // The nodes that cannot reach a sink form the largest source side.
  std::vector<bool> side(static_cast<size_t>(node_count_));
  for (size_t x = 0; x < side.size(); ++x) side[x] = labels_[x] == node_count_;
  return side;
}

// Returns the excess that cannot reach a sink to the sources, which turns the preflow into a flow.
// Then the nodes that a source can reach are on its side in every minimum cut.
std::vector<bool> MaxFlow::LeastSourceSide() {
  MoveExcessTo(Terminal::kSource);
  std::vector<bool> side(static_cast<size_t>(node_count_));
  queue_.clear();
  for (int32_t node = 0; node < node_count_; ++node) {
    if (At(roles_, node) != Terminal::kSource) continue;
    side[static_cast<size_t>(node)] = true;
    queue_.push_back(node);
  }
  for (size_t next = 0; next < queue_.size(); ++next) {
    const int32_t node = queue_[next];
    work_ += At(first_, node + 1) - At(first_, node);
    for (int32_t i = At(first_, node); i < At(first_, node + 1); ++i) {
      const Arc& arc = At(arcs_, i);
      if (arc.residual == 0 || side[static_cast<size_t>(arc.head)]) continue;
      side[static_cast<size_t>(arc.head)] = true;
      queue_.push_back(arc.head);
    }
  }
  return side;
}

// Moves excess along shortest residual paths until all of it has reached the target or cannot.
void MaxFlow::MoveExcessTo(Terminal target) {
  RelabelAll(target);
  while (highest_active_ >= 0) {
    const int32_t node = At(active_first_, highest_active_);
    if (node == kNone) {
      --highest_active_;
      continue;
    }
    At(active_first_, highest_active_) = At(active_next_, node);
    Discharge(node);
    if (work_ >= next_relabelling_) RelabelAll(target);
  }
}

// Sets labels to exact distances by a backward search from the target.
void MaxFlow::RelabelAll(Terminal target) {
  PollStop();
  std::fill(labels_.begin(), labels_.end(), node_count_);
  std::fill(level_first_.begin(), level_first_.end(), kNone);
  std::fill(active_first_.begin(), active_first_.end(), kNone);
  current_.assign(first_.begin(), first_.end() - 1);
  highest_active_ = -1;
  highest_level_ = 0;
  queue_.clear();
  for (int32_t node = 0; node < node_count_; ++node) {
    if (At(roles_, node) != target) continue;
    At(labels_, node) = 0;
    queue_.push_back(node);
  }
  for (size_t next = 0; next < queue_.size(); ++next) {
    const int32_t node = queue_[next];
    for (int32_t i = At(first_, node); i < At(first_, node + 1); ++i) {
      const Arc& arc = At(arcs_, i);
      if (At(labels_, arc.head) != node_count_ || At(roles_, arc.head) != Terminal::kNone) continue;
      if (At(arcs_, arc.mate).residual == 0) continue;
      At(labels_, arc.head) = At(labels_, node) + 1;
      InsertInLevel(arc.head);
      if (At(excess_, arc.head) > 0) Activate(arc.head);
      queue_.push_back(arc.head);
    }
  }
  const auto pass = static_cast<int64_t>(arcs_.size() + labels_.size());
  work_ += pass;
  next_relabelling_ = work_ + 2 * pass;
}

void MaxFlow::Discharge(int32_t node) {
  do {
    const int32_t end = At(first_, node + 1);
    int32_t& i = At(current_, node);
    for (; i < end; ++i) {
      ++work_;
      Arc& arc = At(arcs_, i);
      if (arc.residual == 0 || At(labels_, arc.head) + 1 != At(labels_, node)) continue;
      Push(node, &arc);
      if (At(excess_, node) == 0) return;
    }
  } while (Relabel(node));
}

void MaxFlow::Push(int32_t node, Arc* arc) {
  const int64_t amount = std::min(At(excess_, node), arc->residual);
  arc->residual -= amount;
  At(arcs_, arc->mate).residual += amount;
  At(excess_, node) -= amount;
  if (At(excess_, arc->head) == 0 && At(labels_, arc->head) > 0) Activate(arc->head);
  At(excess_, arc->head) += amount;
}

// Returns false if the node can no longer reach the target.
bool MaxFlow::Relabel(int32_t node) {
  const int32_t old_label = At(labels_, node);
  RemoveFromLevel(node);
  if (At(level_first_, old_label) == kNone) {
    // A gap: no node above it can reach the target. These nodes have no excess, since the
    // discharged node has the highest label of all nodes with excess.
    LiftAbove(old_label);
    At(labels_, node) = node_count_;
    return false;
  }
  int32_t lowest = node_count_;
  for (int32_t i = At(first_, node); i < At(first_, node + 1); ++i) {
    ++work_;
    const Arc& arc = At(arcs_, i);
    if (arc.residual > 0) lowest = std::min(lowest, At(labels_, arc.head));
  }
  At(labels_, node) = std::min(lowest + 1, node_count_);
  At(current_, node) = At(first_, node);
  if (At(labels_, node) == node_count_) return false;
  InsertInLevel(node);
  return true;
}

void MaxFlow::Activate(int32_t node) {
  const int32_t label = At(labels_, node);
  At(active_next_, node) = std::exchange(At(active_first_, label), node);
  highest_active_ = std::max(highest_active_, label);
}

void MaxFlow::InsertInLevel(int32_t node) {
  const int32_t label = At(labels_, node);
  const int32_t next = std::exchange(At(level_first_, label), node);
  At(level_next_, node) = next;
  At(level_previous_, node) = kNone;
  if (next != kNone) At(level_previous_, next) = node;
  highest_level_ = std::max(highest_level_, label);
}

void MaxFlow::RemoveFromLevel(int32_t node) {
  const int32_t next = At(level_next_, node);
  const int32_t previous = At(level_previous_, node);
  if (next != kNone) At(level_previous_, next) = previous;
  (previous == kNone ? At(level_first_, At(labels_, node)) : At(level_next_, previous)) = next;
}

void MaxFlow::LiftAbove(int32_t level) {
  for (int32_t i = level + 1; i <= highest_level_; ++i) {
    for (int32_t node = At(level_first_, i); node != kNone; node = At(level_next_, node)) {
      At(labels_, node) = node_count_;
      ++work_;
    }
    At(level_first_, i) = kNone;
  }
  highest_level_ = level;
}

}  // namespace ckplan
