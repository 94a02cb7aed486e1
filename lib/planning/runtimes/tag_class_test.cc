#include "lib/planning/runtimes/tag_class.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/problem/schedule/simulate.h"
#include "lib/testing/layered_graph.h"

namespace ckplan {
namespace {

std::string NamesOf(const JointGraph& graph, const std::vector<OpId>& runs) {
  std::string text;
  for (const OpId id : runs) {
    std::string name = graph.op(id).name;
    const size_t end = name.find(" backward");
    if (end != std::string::npos) name = name.substr(0, end) + "'";
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

JointGraph Expanded(std::string_view text) { return ExpandTensorGraph(GraphFromText(text)).graph; }

}  // namespace

TEST_CASE("tags: recomputed operations run before the first backward operation that reads them") {
  const JointGraph graph = Expanded("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1");
  CHECK(NamesOf(graph, RecomputingRuns(graph, {OpId(1), OpId(2)})) ==
        "a b c d loss b c d' c' b' a'");
  CHECK(NamesOf(graph, RecomputingRuns(graph, {OpId(0)})) == "a b c d loss d' c' a b' a'");
  CHECK(RecomputingRuns(graph, {}) == OwnOrder(graph));
}

TEST_CASE("tags: what no backward operation needs does not run again") {
  //  a → b → c: the backward of c reads b alone, and that of b reads nothing
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:2 -> c:1"));
  for (Node& node : parts.nodes) {
    node.backward_reads = node.name == "c" ? node.inputs : std::vector<TensorId>{};
  }
  const TensorGraph forward = TensorGraph::Create(std::move(parts)).value();
  const JointGraph graph = ExpandTensorGraph(forward).graph;
  CHECK(NamesOf(graph, RecomputingRuns(graph, {OpId(0)})) == "a b c loss c' b' a'");
  CHECK(NamesOf(graph, RecomputingRuns(graph, {OpId(0), OpId(1)})) == "a b c loss a b c' b' a'");
}

TEST_CASE("tags: the options of a small layer are all sets of its operations but its result") {
  Rng rng(3);
  const JointGraph graph = WithLayers(RandomLayers(rng, 2, 4), 2, 4);
  const TagClass plans = MakeTagClass(graph, FindBlocks(graph).value()).value();
  REQUIRE(plans.unit_count() == 2);
  CHECK(plans.OptionCount(0) == 8);
  CHECK(plans.OptionCount(1) == 8);
  // The result of layer 0 is the operation 3.
  for (int32_t option = 0; option < 8; ++option) {
    const std::vector<OpId> recomputed = plans.RecomputedBy({option, 0});
    CHECK(std::find(recomputed.begin(), recomputed.end(), OpId(3)) == recomputed.end());
  }
}

TEST_CASE("tags: random operations and those that must not run twice are saved") {
  Rng rng(4);
  JointGraphParts parts = PartsOf(WithLayers(RandomLayers(rng, 2, 4), 2, 4));
  parts.ops[OpId(0)].op = "aten.native_dropout.default";
  parts.ops[OpId(1)].may_repeat = false;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const TagClass plans = MakeTagClass(graph, FindBlocks(graph).value()).value();
  CHECK(plans.OptionCount(0) == 2);
  CHECK(plans.RecomputedBy({1, 0}) == std::vector<OpId>{OpId(2)});
}

TEST_CASE("tags: the search finds what brute force over all tags finds") {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = WithLayers(RandomLayers(rng, 2, 4), 2, 4);
    const Bytes budget(KeepAllPeak(graph).count() * rng.Between(30, 100) / 100);
    const TagClass plans = MakeTagClass(graph, FindBlocks(graph).value()).value();
    const ClassPlan found = FindClassPlan(plans, budget);
    // The operations that may be recomputed, by the definition of the class.
    const std::vector<OpId> free = {OpId(0), OpId(1), OpId(2), OpId(4), OpId(5), OpId(6)};
    Cost least = Cost::Max();
    for (unsigned mask = 0; mask < 1U << free.size(); ++mask) {
      std::vector<OpId> recomputed;
      for (size_t i = 0; i < free.size(); ++i) {
        if ((mask >> i & 1) != 0) recomputed.push_back(free[i]);
      }
      const Simulation each = Simulator(graph).Run(RecomputingRuns(graph, recomputed)).value();
      if (each.peak <= budget) least = std::min(least, each.overhead);
    }
    CHECK(found.fits == (least != Cost::Max()));
    if (found.fits) CHECK(found.overhead == least);
  }
}

}  // namespace ckplan
