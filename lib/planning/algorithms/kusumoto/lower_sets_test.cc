#include "lib/planning/algorithms/kusumoto/lower_sets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/stop.h"
#include "lib/planning/algorithms/kusumoto/kusumoto.h"
#include "lib/planning/algorithms/kusumoto/lower_set_dp.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

using NodeBits = uint32_t;  // Test graphs have at most 32 nodes.

// Finds every lower set by trying every subset of the nodes.
std::set<NodeBits> LowerSetsByDefinition(const VertexGraph& graph) {
  std::set<NodeBits> sets;
  for (NodeBits bits = 0; bits < NodeBits{1} << graph.size(); ++bits) {
    bool is_lower = true;
    for (const NodeId v : graph.ids()) {
      if ((bits >> v.index() & 1) == 0) continue;
      for (const NodeId p : graph.predecessors(v)) is_lower &= (bits >> p.index() & 1) != 0;
    }
    if (is_lower) sets.insert(bits);
  }
  return sets;
}

NodeBits BitsOf(const LowerSetFamily& family, int32_t set) {
  NodeBits bits = 0;
  family.ForEachMember(set, [&](NodeId v) { bits |= NodeBits{1} << v.index(); });
  return bits;
}

struct Best {
  int64_t min_peak = INT64_MAX;
  int64_t min_overhead = INT64_MAX;  // Under the budget.
  int64_t max_overhead = -1;         // Under the budget.
};

// Tries all increasing sequences of the given sets, by the definitions alone.
void TrySequences(const VertexGraph& graph, const std::vector<NodeBits>& sets, NodeBits all,
                  Bytes budget, std::vector<NodeBits>* sequence, Best* best) {
  const NodeBits top = sequence->empty() ? 0 : sequence->back();
  if (top == all) {
    IdVector<NodeId, int32_t> segment_of(graph.size());
    for (size_t i = sequence->size(); i-- > 0;) {
      for (const NodeId v : graph.ids()) {
        if (((*sequence)[i] >> v.index() & 1) != 0) segment_of[v] = static_cast<int32_t>(i);
      }
    }
    const CanonicalFigures figures =
        EvaluateCanonical(graph, segment_of, static_cast<int32_t>(sequence->size()));
    best->min_peak = std::min(best->min_peak, figures.peak.count());
    if (figures.peak > budget) return;
    best->min_overhead = std::min(best->min_overhead, figures.overhead.count());
    best->max_overhead = std::max(best->max_overhead, figures.overhead.count());
    return;
  }
  for (const NodeBits next : sets) {
    if (next == top || (next & top) != top) continue;
    sequence->push_back(next);
    TrySequences(graph, sets, all, budget, sequence, best);
    sequence->pop_back();
  }
}

Best BestByTryingAll(const VertexGraph& graph, const LowerSetFamily& family, Bytes budget) {
  std::vector<NodeBits> sets;
  for (int32_t set = 1; set < family.size(); ++set) sets.push_back(BitsOf(family, set));
  std::vector<NodeBits> sequence;
  Best best;
  const NodeBits all = (NodeBits{1} << graph.size()) - 1;
  TrySequences(graph, sets, all, budget, &sequence, &best);
  return best;
}

}  // namespace

TEST_CASE("lower sets: a diamond has six, its closures are four and the empty set") {
  //   a → b → d
  //   a → c → d
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> d:4; a -> c:8 -> d");
  const VertexGraph vertices(graph);
  CHECK(LowerSetFamily::All(vertices, 100)->size() == 6);
  CHECK(LowerSetFamily::Closures(vertices, 100)->size() == 5);
}

TEST_CASE("lower sets: more than the limit is refused, exactly the limit is not") {
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> d:4; a -> c:8 -> d");
  const VertexGraph vertices(graph);
  CHECK(LowerSetFamily::All(vertices, 6).ok());
  CHECK(LowerSetFamily::All(vertices, 5).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("lower sets: several sinks add V to the closures") {
  const TensorGraph graph = GraphFromText("a:1 -> b:2; a -> c:4");
  const VertexGraph vertices(graph);
  const LowerSetFamily closures = *LowerSetFamily::Closures(vertices, 100);
  CHECK(closures.size() == 5);
  CHECK(closures.facts(4).memory == Bytes(7));
}

TEST_CASE("lower sets: neighbours and boundaries equal the definition on random graphs") {
  // Nodes with many readers or many inputs take another path in the code.
  int with_hub = 0;
  int with_join = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(5, 90));
    const auto node_count = static_cast<int>(rng.Between(1, 9));
    const TensorGraph graph = RandomDag(rng, node_count, edge_percent, 20, 5);
    const VertexGraph vertices(graph);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    for (const NodeId v : vertices.ids()) {
      with_hub += vertices.successors(v).size() > 3;
      with_join += vertices.predecessors(v).size() > 3;
    }
    for (int32_t set = 0; set < family.size(); ++set) {
      std::set<NodeId> boundary;
      std::set<NodeId> third;
      std::set<NodeId> fourth;
      family.ForEachMember(set, [&](NodeId v) {
        for (const NodeId reader : vertices.successors(v)) {
          if (family.contains(set, reader)) continue;
          boundary.insert(v);
          third.insert(reader);
          for (const NodeId p : vertices.predecessors(reader)) {
            if (!family.contains(set, p)) fourth.insert(p);
          }
        }
      });
      const auto memory = [&](const std::set<NodeId>& nodes) {
        Bytes sum;
        for (const NodeId v : nodes) sum += vertices.memory(v);
        return sum;
      };
      CHECK(family.facts(set).boundary_memory == memory(boundary));
      CHECK(family.facts(set).neighbours == memory(third) + memory(fourth));
    }
  }
  CHECK(with_hub > 100);
  CHECK(with_join > 100);
}

TEST_CASE("lower sets: the enumeration equals the definition on random graphs") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(5, 70));
    const auto node_count = static_cast<int>(rng.Between(1, 9));
    const TensorGraph graph = RandomDag(rng, node_count, edge_percent, 20, 5);
    const VertexGraph vertices(graph);
    const std::set<NodeBits> expected = LowerSetsByDefinition(vertices);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    std::set<NodeBits> found;
    for (int32_t set = 0; set < family.size(); ++set) found.insert(BitsOf(family, set));
    CHECK(found == expected);
    CHECK(static_cast<size_t>(family.size()) == expected.size());
    // The finder lists the subsets of each member, at any distance, among all members and among a
    // few.
    SubsetFinder finder(family);
    const auto anything = [](int32_t) { return true; };
    const SetSelection all(family);
    std::vector<int32_t> some;
    for (int32_t set = 0; set < family.size(); ++set) {
      if (rng.Between(0, 9) == 0) some.push_back(set);
    }
    const SetSelection few(family, some);
    for (int32_t set = 0; set < family.size(); ++set) {
      std::multiset<NodeBits> subsets;
      for (const NodeBits bits : expected) {
        if (bits != BitsOf(family, set) && (bits & BitsOf(family, set)) == bits) {
          subsets.insert(bits);
        }
      }
      std::multiset<NodeBits> wanted;
      for (const int32_t b : some) {
        if (subsets.count(BitsOf(family, b)) != 0) wanted.insert(BitsOf(family, b));
      }
      const auto met_among = [&](const SetSelection& selected) {
        std::multiset<NodeBits> met;
        finder.ForEach(set, Bytes(1 << 20), selected, anything,
                       [&](int32_t b) { met.insert(BitsOf(family, b)); });
        return met;
      };
      CHECK(met_among(all) == subsets);
      CHECK(met_among(few) == wanted);
      // The finder lists those within half of the member's memory.
      const Bytes half(family.memory(set).count() / 2);
      std::multiset<NodeBits> near;
      finder.ForEach(set, half, all, anything, [&](int32_t b) {
        CHECK(family.memory(set) - family.memory(b) <= half);
        near.insert(BitsOf(family, b));
      });
      for (int32_t b = 0; b < set; ++b) {
        const bool is_near = family.memory(set) - family.memory(b) <= half;
        const NodeBits bits = BitsOf(family, b);
        if (is_near && subsets.count(bits) != 0) CHECK(near.count(bits) == 1);
      }
    }
  }
}

TEST_CASE("lower-set DP: least budget, least and most overhead equal trying every sequence") {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(10, 80));
    const auto node_count = static_cast<int>(rng.Between(1, 6));
    const TensorGraph graph =
        RandomDag(rng, node_count, edge_percent, 9, seed % 2 == 0 ? 6 : int64_t{1} << 40);
    const VertexGraph vertices(graph);
    for (const bool all_sets : {true, false}) {
      CAPTURE(all_sets);
      const LowerSetFamily family = all_sets ? *LowerSetFamily::All(vertices, 1 << 10)
                                             : *LowerSetFamily::Closures(vertices, 100);
      LowerSetDp dp(family);
      const Bytes min_budget = *dp.MinBudget(std::nullopt, {});
      for (const Bytes budget :
           {min_budget - Bytes(1), min_budget, min_budget + Bytes(rng.Between(1, 30))}) {
        CAPTURE(budget.count());
        const Best best = BestByTryingAll(vertices, family, budget);
        CHECK(min_budget.count() == best.min_peak);
        const auto shortest = *dp.Solve(budget, OverheadGoal::kMin, {});
        const auto longest = *dp.Solve(budget, OverheadGoal::kMax, {});
        REQUIRE(shortest.has_value() == (best.max_overhead >= 0));
        REQUIRE(longest.has_value() == (best.max_overhead >= 0));
        if (!shortest) continue;
        ++feasible;
        CHECK(shortest->overhead.count() == best.min_overhead);
        CHECK(longest->overhead.count() == best.max_overhead);
        CHECK(shortest->bound == shortest->overhead);
        CHECK(longest->bound == longest->overhead);
        const CanonicalFigures figures =
            EvaluateCanonical(vertices, SegmentsOfPath(family, vertices, shortest->sets),
                              static_cast<int32_t>(shortest->sets.size()));
        CHECK(figures.overhead == shortest->overhead);
        CHECK(figures.peak <= budget);
      }
    }
  }
  CHECK(feasible > 1000);
}

// Makes parallel branches between two nodes: (length + 1)^count + 2 lower sets.
TensorGraph Branches(uint64_t seed, int count, int length, int64_t max_time = 1000000) {
  Rng rng(seed);
  const auto node = [&](const std::string& name) {
    return name + ":" + std::to_string(rng.Between(1, 100000)) + "@" +
           std::to_string(rng.Between(1, max_time));
  };
  std::string text = node("first");
  std::string last = " -> " + node("last");
  for (int branch = 0; branch < count; ++branch) {
    if (branch > 0) text += "; first";
    for (int i = 0; i < length; ++i) {
      text += " -> " + node("b" + std::to_string(branch) + "_" + std::to_string(i));
    }
    text += branch == 0 ? last : " -> last";
  }
  return GraphFromText(text);
}

TEST_CASE("lower-set DP: the sequence does not depend on the number of threads") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = Branches(seed, 4, 5);
    const VertexGraph vertices(graph);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    REQUIRE(family.size() == 1298);
    DpLimits one;
    one.threads = 1;
    DpLimits several;
    several.threads = 3;
    LowerSetDp alone(family);
    LowerSetDp shared(family);
    if (seed == 1) CHECK(vertices.total_time().count() > kMaxExactTime);
    const Bytes min_budget = *alone.MinBudget(std::nullopt, one);
    CHECK(*shared.MinBudget(std::nullopt, several) == min_budget);
    for (const OverheadGoal goal : {OverheadGoal::kMin, OverheadGoal::kMax}) {
      for (const int64_t percent : {100, 110, 150}) {
        const Bytes budget(min_budget.count() * percent / 100);
        const LowerSetPath path = **alone.Solve(budget, goal, one);
        const LowerSetPath same = **shared.Solve(budget, goal, several);
        CHECK(same.sets == path.sets);
        CHECK(same.bound == path.bound);
      }
    }
  }
}

// Alg. 1 as the paper writes it: a table of the least cached memory for each set and overhead.
// Returns the best overhead with which V is reached.
Cost BestByTable(const LowerSetFamily& family, Bytes budget, OverheadGoal goal) {
  std::vector<std::map<int64_t, Bytes>> table(static_cast<size_t>(family.size()));
  table[0][0] = Bytes(0);
  SubsetFinder finder(family);
  const SetSelection all(family);
  for (int32_t set = 1; set < family.size(); ++set) {
    std::map<int64_t, Bytes>& here = table[static_cast<size_t>(set)];
    const auto pull = [&](int32_t below) {
      const Transition step = Between(family, set, below);
      const Bytes needed =
          2 * (family.memory(set) - family.memory(below)) + family.facts(set).neighbours;
      for (const auto& [time, cached] : table[static_cast<size_t>(below)]) {
        if (cached + needed > budget) continue;
        const auto it = here.try_emplace(time + step.more_time, Bytes::Max()).first;
        it->second = std::min(it->second, cached + step.more_cached);
      }
    };
    finder.ForEach(
        set, family.whole().memory, all, [](int32_t) { return true; }, pull);
  }
  const std::map<int64_t, Bytes>& at_end = table.back();
  REQUIRE(!at_end.empty());
  return Cost(goal == OverheadGoal::kMin ? at_end.begin()->first : at_end.rbegin()->first);
}

TEST_CASE("lower-set DP: thousands of lower sets give the same as the table of Alg. 1") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = Branches(seed, 4, 6, 3);
    const VertexGraph vertices(graph);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    REQUIRE(family.size() == 2403);
    LowerSetDp dp(family);
    const Bytes min_budget = *dp.MinBudget(std::nullopt, {});
    for (const int64_t percent : {100, 130}) {
      CAPTURE(percent);
      const Bytes budget(min_budget.count() * percent / 100);
      for (const OverheadGoal goal : {OverheadGoal::kMin, OverheadGoal::kMax}) {
        const LowerSetPath path = **dp.Solve(budget, goal, {});
        CHECK(path.overhead == BestByTable(family, budget, goal));
        CHECK(path.bound == path.overhead);
      }
    }
  }
}

TEST_CASE("lower-set DP: hints from the search for the least budget change no sequence") {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = Branches(seed, 3, 4);
    const VertexGraph vertices(graph);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    const Bytes min_budget = *LowerSetDp(family).MinBudget(std::nullopt, {});
    LowerSetDp knows(family);
    REQUIRE(*knows.MinBudget(min_budget, {}) == min_budget);
    for (const OverheadGoal goal : {OverheadGoal::kMin, OverheadGoal::kMax}) {
      LowerSetDp alone(family);
      CHECK((**knows.Solve(min_budget, goal, {})).sets ==
            (**alone.Solve(min_budget, goal, {})).sets);
    }
    CHECK(!knows.Solve(min_budget - Bytes(1), OverheadGoal::kMin, {})->has_value());
  }
}

TEST_CASE(
    "lower-set DP: a budget's sequence is also that of every smaller budget down to its peak") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomDag(rng, 8, static_cast<int>(rng.Between(10, 60)), 9, 4);
    const VertexGraph vertices(graph);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 10);
    LowerSetDp dp(family);
    for (const OverheadGoal goal : {OverheadGoal::kMin, OverheadGoal::kMax}) {
      const Bytes budget = *dp.MinBudget(std::nullopt, {}) + Bytes(rng.Between(1, 40));
      const LowerSetPath path = **dp.Solve(budget, goal, {});
      const Bytes peak = EvaluateCanonical(vertices, SegmentsOfPath(family, vertices, path.sets),
                                           static_cast<int32_t>(path.sets.size()))
                             .peak;
      CHECK((*dp.Solve(peak, goal, {}))->sets == path.sets);
    }
  }
}

TEST_CASE("lower-set DP: lists that grow too long are merged, and the gap is bounded") {
  int gaps = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = Branches(seed, 3, 6);
    const VertexGraph vertices(graph);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    LowerSetDp exact(family, std::nullopt, {1 << 30, 1 << 30, 1 << 30});
    const Bytes budget(exact.MinBudget(std::nullopt, {})->count() * 5 / 4);
    for (const int64_t max_steps : {1, 2000, 20000}) {
      CAPTURE(max_steps);
      LowerSetDp merged(family, std::nullopt, {1, max_steps, 1 << 20});
      const LowerSetPath least = **exact.Solve(budget, OverheadGoal::kMin, {});
      const LowerSetPath near_least = **merged.Solve(budget, OverheadGoal::kMin, {});
      CHECK(near_least.bound <= least.overhead);
      CHECK(near_least.overhead >= least.overhead);
      const LowerSetPath most = **exact.Solve(budget, OverheadGoal::kMax, {});
      const LowerSetPath near_most = **merged.Solve(budget, OverheadGoal::kMax, {});
      CHECK(near_most.bound >= most.overhead);
      CHECK(near_most.overhead <= most.overhead);
      const LowerSetPath first = **merged.Solve(budget, OverheadGoal::kMin, {}, Effort::kFirst);
      CHECK(first.bound <= least.overhead);
      CHECK(first.overhead >= near_least.overhead);
      gaps += near_least.bound < near_least.overhead ? 1 : 0;
    }
  }
  CHECK(gaps > 0);
}

TEST_CASE("lower-set DP: rounded times give the first sequence, exact ones refine it") {
  int better = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = Branches(seed, 3, 6);
    const VertexGraph vertices(graph);
    const int64_t unit = DpTimeUnit(vertices);
    REQUIRE(unit > 1);
    const VertexGraph rounded = RoundTimes(vertices, unit);
    const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
    LowerSetDp exact(family);
    LowerSetDp both(family, family.WithTimes(rounded));
    const LowerSetFamily of_rounded = *LowerSetFamily::All(rounded, 1 << 12);
    LowerSetDp coarse(of_rounded);
    const Bytes budget(exact.MinBudget(std::nullopt, {})->count() * 5 / 4);
    for (const OverheadGoal goal : {OverheadGoal::kMin, OverheadGoal::kMax}) {
      const LowerSetPath first = **both.Solve(budget, goal, {}, Effort::kFirst);
      CHECK(first.sets == (**coarse.Solve(budget, goal, {})).sets);
      const CanonicalFigures figures =
          EvaluateCanonical(vertices, SegmentsOfPath(family, vertices, first.sets),
                            static_cast<int32_t>(first.sets.size()));
      CHECK(first.overhead == figures.overhead);
      const LowerSetPath best = **exact.Solve(budget, goal, {});
      const LowerSetPath refined = **both.Solve(budget, goal, {});
      REQUIRE(best.overhead == best.bound);
      CHECK(refined.overhead == best.overhead);
      CHECK(refined.bound == best.bound);
      better += refined.overhead == first.overhead ? 0 : 1;
    }
  }
  CHECK(better > 0);
}

TEST_CASE("lower-set DP: costs of up to a hundred thousand in total are not rounded") {
  const TensorGraph small = GraphFromText("a:4@1 -> b:2@99998 -> c:1@1");
  CHECK(DpTimeUnit(VertexGraph(small)) == 1);
  const TensorGraph large = GraphFromText("a:4@1 -> b:2@99999 -> c:1@1");
  const VertexGraph vertices(large);
  const int64_t unit = DpTimeUnit(vertices);
  CHECK(unit == 101);
  const VertexGraph rounded = RoundTimes(vertices, unit);
  CHECK(rounded.time(NodeId(0)) == Cost(1));
  CHECK(rounded.time(NodeId(1)) == Cost(990));
}

TEST_CASE("lower sets: a large graph uses only some closures, and a budget is still found") {
  std::string text = "n0:7@1";
  for (int i = 1; i < 200; ++i) text += " -> n" + std::to_string(i) + (i % 3 == 1 ? ":1" : ":7");
  const TensorGraph graph = GraphFromText(text);
  const VertexGraph vertices(graph);
  const LowerSetFamily closures = *LowerSetFamily::Closures(vertices, 70);
  CHECK(closures.stride() == 3);
  CHECK(closures.size() == 67 + 1);  // The last chosen closure is V.
  for (int32_t set = 1; set + 1 < closures.size(); ++set) {
    CHECK(closures.facts(set).boundary_memory == Bytes(1));
  }
  CHECK(LowerSetDp(closures).MinBudget(std::nullopt, {})->count() <
        vertices.total_memory().count() / 2);
}

TEST_CASE("lower-set DP: a limit on transitions is an error, not an endless search") {
  Rng rng(7);
  const TensorGraph graph = RandomDag(rng, 14, 15, 20, 9);
  const VertexGraph vertices(graph);
  const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 14);
  LowerSetDp dp(family);
  DpLimits limits;
  limits.max_transitions = 10;
  CHECK(dp.MinBudget(std::nullopt, limits).error().code == ErrorCode::kUnsupported);
  CHECK(dp.Solve(Bytes(1000), OverheadGoal::kMin, limits).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("lower-set DP: a stop request ends the search") {
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> d:4; a -> c:8 -> d");
  const VertexGraph vertices(graph);
  const LowerSetFamily family = *LowerSetFamily::All(vertices, 100);
  std::stop_source source;
  source.request_stop();
  DpLimits limits;
  limits.stop = source.get_token();
  CHECK(LowerSetDp(family).Solve(Bytes(100), OverheadGoal::kMin, limits).error().code ==
        ErrorCode::kTimeout);
  CHECK(LowerSetDp(family).MinBudget(std::nullopt, limits).error().code == ErrorCode::kTimeout);
  CHECK(LowerSetFamily::All(vertices, 100, limits).error().code == ErrorCode::kTimeout);
  CHECK(LowerSetFamily::Closures(vertices, 100, limits).error().code == ErrorCode::kTimeout);
}

// Requests a stop from another thread at poll number `at` of the search; the search's own other
// threads go on meanwhile.
class StopAtPoll {
 public:
  explicit StopAtPoll(int64_t at) : at_(at), other_([this] { Wait(); }) {}
  ~StopAtPoll() {
    polls_ = at_;  // The search may have ended before.
    other_.join();
  }

  std::stop_token token() const { return source_.get_token(); }
  void Poll() {
    if (++polls_ != at_) return;
    while (!source_.stop_requested()) std::this_thread::yield();
  }

 private:
  void Wait() {
    while (polls_ < at_) std::this_thread::yield();
    source_.request_stop();
  }

  const int64_t at_;
  std::atomic<int64_t> polls_ = 0;
  std::stop_source source_;
  std::thread other_;
};

TEST_CASE("lower-set DP: a stop by another thread ends a search by several threads at any time") {
  const TensorGraph graph = Branches(1, 4, 5);
  const VertexGraph vertices(graph);
  const LowerSetFamily family = *LowerSetFamily::All(vertices, 1 << 12);
  const Bytes budget = *LowerSetDp(family).MinBudget(std::nullopt, {});
  const auto solve = [&](const std::function<void()>& poll, const std::stop_token& of_scope,
                         const std::stop_token& of_limits) {
    const StopScope scope(of_scope, [&poll](int64_t) { poll(); });
    DpLimits limits;
    limits.threads = 3;
    limits.stop = of_limits;
    return LowerSetDp(family).Solve(budget, OverheadGoal::kMin, limits);
  };
  int64_t polls = 0;
  REQUIRE(solve([&] { ++polls; }, {}, {}).ok());
  REQUIRE(polls > 16);
  for (int64_t at = 1; at < polls; at += 1 + polls / 16) {
    CAPTURE(at);
    StopAtPoll everything(at);
    CHECK_THROWS_AS((void)solve([&] { everything.Poll(); }, everything.token(), {}), Stopped);
    StopAtPoll search(at);
    CHECK(solve([&] { search.Poll(); }, {}, search.token()).error().code == ErrorCode::kTimeout);
  }
}

}  // namespace ckplan
