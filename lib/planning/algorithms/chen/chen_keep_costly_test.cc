#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

Plan PlanOf(const char* algorithm, const TensorGraph& graph,
            std::optional<int64_t> budget = std::nullopt) {
  PlanRequest request;
  request.algorithm = algorithm;
  if (budget) request.setting = KnobSetting{"B", *budget};
  return *MakePlan(graph, request, {});
}

// Returns the names of the nodes that are recomputed.
std::string RecomputedBy(const TensorGraph& graph, const Plan& plan) {
  std::string names;
  for (const NodeId id : graph.nodes().ids()) {
    if (plan.decisions[id].recompute_count == 0) continue;
    names += (names.empty() ? "" : " ") + graph.node(id).name;
  }
  return names;
}

}  // namespace

// There are nine results of 4 bytes with a total cost of 36. The paper's overhead includes the last
// segment, although none of it is recomputed.
TEST_CASE("chen-keep-costly: convolutions are kept up to B bytes") {
  const TensorGraph graph = GraphFromText(
      "c1:4@10 -> b1:4@1 -> r1:4@1 -> c2:4@10 -> b2:4@1 -> r2:4@1 -> c3:4@10 -> b3:4@1 -> r3:4@1");
  const struct {
    int64_t budget;
    const char* recomputed;
    int64_t paper_peak;
    int64_t paper_overhead;
  } kRows[] = {
      // There is a cut after every result, so all are kept.
      {0, "", 32 + 4, 1},
      // Segments end at 8 bytes: after b1, c2, r2 and b3. There is room for c1, but not for c3.
      {7, "r1 b2 c3", 16 + 4 + 8, 36 - 13 - 10},
      // Segments end at 12 bytes, after r1 and r2, with room for c1 and c2.
      {8, "b1 b2", 8 + 8 + 12, 36 - 2 - 20},
      {11, "b1 b2", 8 + 8 + 12, 36 - 2 - 20},
      // Segments end at 16 bytes, after c2 and b3, with room for c1, c3 and b1.
      {12, "r1 b2 r2", 8 + 12 + 16, 36 - 11 - 21},
      // There is one segment, which is the last.
      {36, "", 36, 36},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.budget);
    const Plan plan = PlanOf("chen-keep-costly", graph, row.budget);
    CHECK(RecomputedBy(graph, plan) == row.recomputed);
    CHECK(plan.figures.paper ==
          PaperFigures{Bytes(row.budget), Bytes(row.paper_peak), Cost(row.paper_overhead)});
  }
  // With B = 0, x = 32 and y = 4, so the setting is floor(sqrt(128)).
  CHECK(PlanOf("chen-keep-costly", graph).figures.setting == KnobSetting{"B", 11});
}

// Cuts are after j and k. Of a and b, only one can be kept in six bytes. Per byte, keeping a saves
// a cost of 10 / 4, and keeping b saves 12 / 5.
TEST_CASE("chen-keep-costly: not optimal if results differ in size") {
  const TensorGraph graph = GraphFromText("a:4@10 -> j:3@1 -> b:5@12 -> k:2@1 -> d:1@1");
  const Plan plan = PlanOf("chen-keep-costly", graph, 6);
  CHECK(RecomputedBy(graph, plan) == "b");
  CHECK(plan.figures.overhead == Cost(12));
}

TEST_CASE(
    "chen-keep-costly: at most B bytes more than chen-greedy with the same B, and no more time") {
  int spared = 0;
  for (uint64_t seed = 1; seed <= Instances(300); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    std::string text;
    for (int64_t i = rng.Between(2, 30); i > 0; --i) {
      text += (text.empty() ? "n" : " -> n") + std::to_string(i) + ":" +
              std::to_string(rng.Between(0, 9)) + "@" + std::to_string(rng.Between(0, 9));
    }
    const TensorGraph graph = GraphFromText(text);
    const int64_t budget = rng.Between(1, 40);
    const Plan greedy = PlanOf("chen-greedy", graph, budget);
    const Plan costly = PlanOf("chen-keep-costly", graph, budget);
    CHECK(costly.figures.paper.peak <= greedy.figures.paper.peak + Bytes(budget));
    CHECK(costly.figures.overhead <= greedy.figures.overhead);
    spared += costly.figures.overhead < greedy.figures.overhead ? 1 : 0;
  }
  CHECK(spared > Instances(100));
}

}  // namespace ckplan
