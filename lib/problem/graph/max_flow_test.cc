#include "lib/problem/graph/max_flow.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "lib/base/rng.h"

namespace ckplan {
namespace {

using Terminal = MaxFlow::Terminal;

struct Network {
  struct Arc {
    int32_t from;
    int32_t to;
    int64_t capacity;
  };
  int32_t node_count = 0;
  std::vector<Arc> arcs;
  std::vector<Terminal> terminals;
};

// The first node is a source and the last a sink. Infinite arcs lead from nodes other than the
// first to higher nodes other than the last, so no path of infinite arcs connects the source to
// the sink.
Network RandomNetwork(Rng& rng) {
  Network network;
  network.node_count = static_cast<int32_t>(rng.Between(2, 9));
  network.terminals.assign(static_cast<size_t>(network.node_count), Terminal::kNone);
  const int32_t last = network.node_count - 1;
  if (last > 3 && rng.Chance(30)) network.terminals[1] = Terminal::kSource;
  network.terminals.front() = Terminal::kSource;
  network.terminals.back() = Terminal::kSink;
  const int64_t arc_count = rng.Between(1, 24);
  for (int64_t i = 0; i < arc_count; ++i) {
    const auto from = static_cast<int32_t>(rng.Between(0, last));
    const auto to = static_cast<int32_t>(rng.Between(0, last));
    const bool is_infinite = rng.Chance(25) && from < to && to < last;
    const int64_t capacity = is_infinite ? MaxFlow::kInfinite : rng.Between(0, 9);
    if (from != to) network.arcs.push_back({from, to, capacity});
  }
  return network;
}

struct Cuts {
  int64_t least = MaxFlow::kInfinite;
  uint32_t smallest = 0;  // The intersection of the source sides of all minimum cuts.
  uint32_t largest = 0;   // The union of these sides.
};

// Finds minimum cuts by trying every set of nodes.
Cuts NaiveCuts(const Network& network) {
  Cuts cuts;
  for (uint32_t side = 0; side < (uint32_t{1} << network.node_count); ++side) {
    const auto has = [&](int32_t node) { return (side >> node & 1) != 0; };
    bool is_cut = true;
    for (int32_t node = 0; node < network.node_count; ++node) {
      const Terminal terminal = network.terminals[static_cast<size_t>(node)];
      is_cut = is_cut && !(terminal == Terminal::kSource && !has(node)) &&
               !(terminal == Terminal::kSink && has(node));
    }
    int64_t capacity = 0;
    for (const Network::Arc& arc : network.arcs) {
      if (!has(arc.from) || has(arc.to)) continue;
      is_cut = is_cut && arc.capacity != MaxFlow::kInfinite;
      if (is_cut) capacity += arc.capacity;
    }
    if (!is_cut || capacity > cuts.least) continue;
    if (capacity < cuts.least) cuts = {capacity, side, side};
    cuts.smallest &= side;
    cuts.largest |= side;
  }
  return cuts;
}

uint32_t MaskOf(const std::vector<bool>& side) {
  uint32_t mask = 0;
  for (size_t i = 0; i < side.size(); ++i) mask |= static_cast<uint32_t>(side[i]) << i;
  return mask;
}

MaxFlow FlowOf(const Network& network) {
  MaxFlow flow(network.node_count);
  for (const Network::Arc& arc : network.arcs) flow.AddArc(arc.from, arc.to, arc.capacity);
  for (int32_t node = 0; node < network.node_count; ++node) {
    flow.SetTerminal(node, network.terminals[static_cast<size_t>(node)]);
  }
  return flow;
}

void CheckCuts(MaxFlow* flow, const Network& network) {
  const Cuts cuts = NaiveCuts(network);
  CHECK(flow->Solve() == cuts.least);
  CHECK(MaskOf(flow->LargestSourceSide()) == cuts.largest);
  CHECK(MaskOf(flow->LeastSourceSide()) == cuts.smallest);
}

}  // namespace

TEST_CASE("max flow: minimum cuts of random networks are those found among all sets") {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const Network network = RandomNetwork(rng);
    MaxFlow flow = FlowOf(network);
    CheckCuts(&flow, network);
  }
}

TEST_CASE("max flow: a network is solved again with other capacities and terminals") {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    Network network = RandomNetwork(rng);
    MaxFlow flow = FlowOf(network);
    for (int round = 0; round < 4; ++round) {
      for (size_t i = 0; i < network.arcs.size(); ++i) {
        if (network.arcs[i].capacity == MaxFlow::kInfinite || rng.Chance(50)) continue;
        network.arcs[i].capacity = rng.Between(0, 20);
        flow.SetCapacity(static_cast<int32_t>(i), network.arcs[i].capacity);
      }
      CheckCuts(&flow, network);
    }
  }
}

TEST_CASE("max flow: capacities may come near to the limit") {
  // s ─▶ a ─▶ b ─▶ t, and s ─▶ b: b's arc is the cut.
  constexpr int64_t kHuge = int64_t{1} << 59;
  MaxFlow flow(4);
  flow.SetTerminal(0, Terminal::kSource);
  flow.SetTerminal(3, Terminal::kSink);
  flow.AddArc(0, 1, kHuge);
  flow.AddArc(1, 2, MaxFlow::kInfinite);
  flow.AddArc(0, 2, kHuge + 1);
  flow.AddArc(2, 3, kHuge + 3);
  CHECK(flow.Solve() == kHuge + 3);
  CHECK(flow.LargestSourceSide() == std::vector<bool>{true, true, true, false});
}

TEST_CASE("max flow: many levels with dead ends") {
  // A long chain of capacity 2. Each node also has an arc to a dead end.
  constexpr int32_t kLength = 2000;
  MaxFlow flow(2 * kLength);
  flow.SetTerminal(0, Terminal::kSource);
  flow.SetTerminal(kLength - 1, Terminal::kSink);
  for (int32_t i = 0; i + 1 < kLength; ++i) {
    flow.AddArc(i, i + 1, i == 700 ? 1 : 2);
    flow.AddArc(i, kLength + i, 5);
  }
  CHECK(flow.Solve() == 1);
  const std::vector<bool> side = flow.LeastSourceSide();
  CHECK(side[700]);
  CHECK(!side[701]);
  CHECK(flow.work() < 2'000'000);
}

}  // namespace ckplan
