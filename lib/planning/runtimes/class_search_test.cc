#include "lib/planning/runtimes/class_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "lib/planning/runtimes/region_class.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/layered_graph.h"

namespace ckplan {
namespace {

constexpr size_t kSearchLayers = 5;

using Figures = std::tuple<int64_t, Cost, Bytes>;

Figures FiguresOf(Bytes peak, Cost overhead, Bytes budget) {
  const int64_t hundredth = std::max(budget.count() / 100, int64_t{1});
  const int64_t above = std::max(peak - budget, Bytes(0)).count();
  return {(above + hundredth - 1) / hundredth, overhead, peak};
}

// Simulates every choice of one of two options, and returns the best.
Figures BruteForce(const PlanClass& plans, Bytes budget) {
  Figures least = {INT64_MAX, Cost(0), Bytes(0)};
  for (unsigned mask = 0; mask < 1U << plans.unit_count(); ++mask) {
    Choice choice;
    for (size_t unit = 0; unit < plans.unit_count(); ++unit) {
      choice.push_back(static_cast<int32_t>(mask >> unit & 1));
    }
    const Simulation found = Simulator(plans.graph()).Run(plans.RunsOf(choice)).value();
    least = std::min(least, FiguresOf(found.peak, found.overhead, budget));
  }
  return least;
}

struct SearchCase {
  JointGraph graph;
  Bytes budget;
};

// Layers of random sizes, and a budget between a quarter and all of what keeping all needs.
SearchCase RandomSearchCase(uint64_t seed) {
  Rng rng(seed);
  JointGraph graph = WithLayers(RandomLayers(rng, kSearchLayers, 4), kSearchLayers, 4);
  const Bytes keep_all = KeepAllPeak(graph);
  return {std::move(graph), Bytes(keep_all.count() * rng.Between(25, 100) / 100)};
}

}  // namespace

TEST_CASE("class search: with work for all choices it finds what brute force finds") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const SearchCase each = RandomSearchCase(seed);
    const std::vector<Block> blocks = FindBlocks(each.graph).value();
    const RegionClass plans = MakeRegionClass(each.graph, blocks, RuntimeKind::kCheckpoint).value();
    REQUIRE(plans.unit_count() == kSearchLayers + 1);
    const ClassPlan found = FindClassPlan(plans, each.budget);
    CHECK(found.is_exact);
    CHECK(found.fits == (found.peak <= each.budget));
    CHECK(FiguresOf(found.peak, found.overhead, each.budget) == BruteForce(plans, each.budget));
  }
}

TEST_CASE("class search: with less work it is near the best, and never above keeping all") {
  int best_found = 0;
  constexpr int kCases = 40;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    CAPTURE(seed);
    const SearchCase each = RandomSearchCase(seed);
    const std::vector<Block> blocks = FindBlocks(each.graph).value();
    const RegionClass plans = MakeRegionClass(each.graph, blocks, RuntimeKind::kCheckpoint).value();
    const auto steps = static_cast<int64_t>(plans.graph().ops().size()) * 40;
    const ClassPlan found = FindClassPlan(plans, each.budget, steps);
    CHECK_FALSE(found.is_exact);
    const Figures figures = FiguresOf(found.peak, found.overhead, each.budget);
    const Figures least = BruteForce(plans, each.budget);
    CHECK(figures >= least);
    CHECK(figures <= FiguresOf(KeepAllPeak(each.graph), Cost(0), each.budget));
    best_found += figures == least ? 1 : 0;
  }
  CHECK(best_found >= kCases * 8 / 10);
}

}  // namespace ckplan
