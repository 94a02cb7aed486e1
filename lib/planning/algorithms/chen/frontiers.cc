#include "lib/planning/algorithms/chen/frontiers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

Frontiers FrontiersAlong(const VertexGraph& vertices, std::vector<NodeId> order) {
  IdVector<NodeId, size_t> position(vertices.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  // The bytes that leave the frontier at each position: results whose last reader is there.
  std::vector<Bytes> leaving(order.size());
  Frontiers frontiers;
  Bytes passed;
  Bytes frontier;
  for (size_t i = 0; i < order.size(); ++i) {
    PollStop();
    const NodeId v = order[i];
    size_t last_reader = i;
    for (const NodeId w : vertices.successors(v)) {
      last_reader = std::max(last_reader, position[w]);
    }
    passed += vertices.memory(v);
    frontier += vertices.memory(v);
    leaving[last_reader] += vertices.memory(v);
    frontier -= leaving[i];
    frontiers.passed.push_back(passed);
    frontiers.frontier.push_back(frontier);
  }
  frontiers.order = std::move(order);
  return frontiers;
}

IdVector<NodeId, size_t> LevelsOf(const VertexGraph& vertices) {
  IdVector<NodeId, size_t> level(vertices.size());
  for (const NodeId v : vertices.ids()) {
    for (const NodeId p : vertices.predecessors(v)) level[v] = std::max(level[v], level[p] + 1);
  }
  for (size_t i = vertices.size(); i-- > 0;) {
    const NodeId v(i);
    if (vertices.successors(v).empty()) continue;
    size_t first_reader = vertices.size();
    for (const NodeId w : vertices.successors(v)) first_reader = std::min(first_reader, level[w]);
    level[v] = first_reader - 1;
  }
  return level;
}

// Returns a * multiple / parts, rounded down, without overflow.
Bytes MultipleOf(Bytes a, int64_t multiple, int64_t parts) {
  return Bytes(a.count() / parts * multiple + a.count() % parts * multiple / parts);
}

Bytes Distance(Bytes a, Bytes b) { return a < b ? b - a : a - b; }

}  // namespace

Frontiers FrontiersInGraphOrder(const VertexGraph& vertices) {
  std::vector<NodeId> order;
  for (const NodeId v : vertices.ids()) order.push_back(v);
  return FrontiersAlong(vertices, std::move(order));
}

Frontiers FrontiersByLevel(const VertexGraph& vertices) {
  const IdVector<NodeId, size_t> level = LevelsOf(vertices);
  std::vector<NodeId> order;
  for (const NodeId v : vertices.ids()) order.push_back(v);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return level[a] < level[b]; });
  return FrontiersAlong(vertices, std::move(order));
}

std::vector<size_t> CutAtSmallFrontiers(const Frontiers& frontiers, int64_t segments) {
  std::vector<size_t> cuts;
  if (frontiers.order.empty()) return cuts;
  const Bytes total = frontiers.passed.back();
  // A cut after the last node would split nothing.
  const auto first = frontiers.passed.begin();
  const auto end = frontiers.passed.end() - 1;
  auto low = first;
  for (int64_t i = 1; i < segments; ++i) {
    PollStop();
    low = std::lower_bound(low, end, MultipleOf(total, 2 * i - 1, 2 * segments));
    const auto high = std::lower_bound(low, end, MultipleOf(total, 2 * i + 1, 2 * segments));
    if (low == high) continue;
    const Bytes target = MultipleOf(total, i, segments);
    const auto rank = [&](std::vector<Bytes>::const_iterator at) {
      __extension__ using Wide = __int128;
      const auto position = static_cast<size_t>(at - first);
      const int64_t distance = Distance(*at, target).count();
      const Wide kept = static_cast<Wide>(frontiers.frontier[position].count()) * (segments - 1);
      return std::tuple(kept + distance, distance, position);
    };
    auto best = low;
    for (auto at = low; at != high; ++at) {
      if (rank(at) < rank(best)) best = at;
    }
    cuts.push_back(static_cast<size_t>(best - first));
    low = high;
  }
  return cuts;
}

}  // namespace ckplan
