#include "lib/planning/algorithms/given/given.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_plan.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/plan/segment_peaks.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

Result<Plan> Judge(const TensorGraph& graph, Decisions decisions, bool uses_liveness = true) {
  PlanRequest request;
  request.algorithm = std::string(kGivenAlgorithm);
  request.decisions = std::move(decisions);
  request.uses_liveness = uses_liveness;
  return MakePlan(graph, request, {});
}

Result<Plan> ValidateText(const TensorGraph& graph, const std::string& decisions) {
  return Judge(graph, *ReadDecisionsJson(decisions, "d.json"));
}

NameOrId IdOf(const TensorGraph& graph, NodeId id) { return {"", graph.node(id).file_id}; }

TensorGraph GraphOf(uint64_t seed) {
  Rng rng(seed);
  if (seed % 3 == 0) return RandomDag(rng, static_cast<int>(rng.Between(1, 12)), 30, 20, 9);
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(1, 14));
  return RandomTensorGraph(rng, options);
}

TensorGraph ChainOf(uint64_t seed) {
  Rng rng(seed);
  std::string text;
  for (int64_t i = rng.Between(2, 20); i > 0; --i) {
    text += (text.empty() ? "n" : " -> n") + std::to_string(i) + ":" +
            std::to_string(rng.Between(1, 9)) + "@" + std::to_string(rng.Between(1, 9));
  }
  return GraphFromText(text);
}

// Returns the plan's own decisions: its segments, or, if it has none, the nodes that it never
// recomputes.
Decisions DecisionsOf(const TensorGraph& graph, const Plan& plan) {
  Decisions decisions;
  int32_t last = 0;
  for (const NodeDecision& row : plan.decisions) last = std::max(last, row.segment);
  if (last == 0) {
    decisions.sets.emplace_back();
    for (const NodeId id : graph.nodes().ids()) {
      if (plan.decisions[id].recompute_count > 0) continue;
      for (const TensorId output : graph.node(id).outputs) {
        decisions.sets.front().push_back({"", graph.tensor(output).file_id});
      }
    }
    return decisions;
  }
  decisions.form = Decisions::Form::kLowerSets;
  decisions.sets.resize(static_cast<size_t>(last) + 1);
  for (const NodeId id : graph.nodes().ids()) {
    decisions.sets[static_cast<size_t>(plan.decisions[id].segment)].push_back(IdOf(graph, id));
  }
  return decisions;
}

}  // namespace

// a → b → c → d, each 10 bytes and one unit of cost; backward reads input and output.
//
// Keeping everything takes 60 at the backward of d: 40 bytes of results, and the gradients of d and
// c.
TEST_CASE("given: each form on a chain of four, by hand") {
  const TensorGraph graph = GraphFromText("a:10 -> b:10 -> c:10 -> d:10");
  REQUIRE(KeepAllPeak(graph) == Bytes(60));
  const struct {
    const char* decisions;
    const char* steps;
    int64_t peak;
    int64_t overhead;
  } kRows[] = {
      // The peak is 50: b, the recomputed c and d, and their gradients. Forward keeps only b.
      {R"({"kept": ["b"]})", "fa fb fc fd loss fc fd bd bc fa bb ba", 50, 3},
      // The last segment, c and d, is still in memory: b, c, d and two gradients.
      {R"({"checkpoints": ["b"]})", "fa fb fc fd loss bd bc fa bb ba", 50, 1},
      {R"({"lower_sets": [["a", "b"]]})", "fa fb fc fd loss bd bc fa bb ba", 50, 1},
      {R"({"lower_sets": [["b", "a"], ["a", "b", "c", "d"]]})", "fa fb fc fd loss bd bc fa bb ba",
       50, 1},
      {R"({"lower_sets": [["a", "b"], ["c"], ["d"]]})", "fa fb fc fd loss bd bc fa bb ba", 50, 1},
      {R"({"mirror_counts": {"a": 1}})", "fa fb fc fd loss bd bc fa bb ba", 50, 1},
      // Alg. 2: c reads b', made from a'; the backward of b reads a''. At most two results and two
      // gradients are live at once: c, d and their gradients, then c, a', b' and the gradient of c,
      // ...
      {R"({"mirror_counts": {"a": 2, "b": 1}})", "fa fb fc fd loss bd fa fb bc fa bb ba", 40, 3},
      {R"({"order": [["f", "a"], ["f", "b"], ["f", "c"], ["f", "d"], ["loss"], ["b", "d"],
                     ["b", 2], ["f", 0], ["b", "b"], ["b", "a"]]})",
       "fa fb fc fd loss bd bc fa bb ba", 50, 1},
      {R"({"kept": ["a", "b", "c", "d"]})", "fa fb fc fd loss bd bc bb ba", 60, 0},
      {R"({"mirror_counts": {}})", "fa fb fc fd loss bd bc bb ba", 60, 0},
      {R"({"checkpoints": []})", "fa fb fc fd loss bd bc bb ba", 60, 0},
      {R"({"checkpoints": ["d"]})", "fa fb fc fd loss bd bc bb ba", 60, 0},
  };
  for (const auto& row : kRows) {
    CAPTURE(std::string(row.decisions));
    const Result<Plan> plan = ValidateText(graph, row.decisions);
    REQUIRE(plan.ok());
    CHECK(StepsOf(graph, plan->schedule) == row.steps);
    CHECK(plan->figures.peak == Bytes(row.peak));
    CHECK(plan->figures.overhead == Cost(row.overhead));
    if (plan->request.decisions->form != Decisions::Form::kLowerSets) {
      CHECK(plan->figures.paper == PaperFigures{std::nullopt, Bytes(row.peak), Cost(row.overhead)});
    }
    CHECK_FALSE(plan->figures.is_optimal);
  }
}

// The segments are {a, b} and {c, d}; b is kept:
//   M^(1) = 2 * 20 + M({c}) = 50     M^(2) = M({b}) + 2 * 20 = 50     T = T({a}) + T({c, d}) = 3
TEST_CASE("given: lower sets report Eq. 1, Eq. 2 and M^(i), by hand") {
  const TensorGraph graph = GraphFromText("a:10 -> b:10 -> c:10 -> d:10");
  const Plan plan = *ValidateText(graph, R"({"lower_sets": [["a", "b"]]})");
  CHECK(plan.figures.paper == PaperFigures{std::nullopt, Bytes(50), Cost(3)});
  CHECK(SegmentPeaksOf(graph, plan) == std::vector<Bytes>{Bytes(50), Bytes(50)});
  const Plan three = *ValidateText(graph, R"({"lower_sets": [["a"], ["b", "c"], ["d"]]})");
  // The three segment peaks are 2 * 10 + M({b}), M({a}) + 2 * 20 + M({d}), M({a, c}) + 2 * 10.
  CHECK(three.figures.paper == PaperFigures{std::nullopt, Bytes(60), Cost(2)});
  CHECK(SegmentPeaksOf(graph, three) == std::vector<Bytes>{Bytes(30), Bytes(60), Bytes(40)});
  // Segments of other forms are not lower sets that a user has written down.
  CHECK(SegmentPeaksOf(graph, *ValidateText(graph, R"({"checkpoints": ["b"]})")).empty());
}

TEST_CASE("given: the lower sets of exact-dp's plans report its Eq. 1 and Eq. 2") {
  int compared = 0;
  for (const Granularity granularity : {Granularity::kNode, Granularity::kLayer}) {
    for (uint64_t seed = 1; seed <= Instances(200); ++seed) {
      CAPTURE(seed);
      const TensorGraph graph = GraphOf(seed);
      PlanRequest request;
      request.algorithm = "exact-dp";
      request.granularity = granularity;
      const Plan plan = *MakePlan(graph, request, {});
      std::optional<LayerFold> fold;
      if (granularity == Granularity::kLayer) fold = FoldLayers(graph);
      request.algorithm = "given";
      request.decisions = Decisions{Decisions::Form::kLowerSets, {}, {}, {}};
      auto& sets = request.decisions->sets;
      for (const NodeId id : graph.nodes().ids()) {
        const auto at = static_cast<size_t>(plan.decisions[id].segment);
        if (at >= sets.size()) sets.resize(at + 1);
        sets[at].push_back(fold ? IdOf(fold->graph, fold->layer_of[id]) : IdOf(graph, id));
      }
      const Plan given = *MakePlan(graph, request, {});
      CHECK(given.figures.paper.peak == plan.figures.paper.peak);
      CHECK(given.figures.paper.overhead == plan.figures.paper.overhead);
      const std::vector<Bytes> peaks = SegmentPeaksOf(graph, given);
      CHECK(peaks.size() == sets.size());
      CHECK(*std::max_element(peaks.begin(), peaks.end()) == plan.figures.paper.peak);
      compared += peaks.size() > 1 ? 1 : 0;
      // The file contains the peaks, and its reader rejects other values.
      std::string text = WritePlanJson(given, graph);
      CHECK(ReadPlanJson(text, graph, "plan.json").ok());
      const std::string key = "\"segment_peak_bytes\": [";
      REQUIRE(text.find(key) != std::string::npos);
      text.insert(text.find(key) + key.size(), "1");
      CHECK(ReadPlanJson(text, graph, "plan.json").error().code == ErrorCode::kCheckFailed);
    }
  }
  CHECK(compared > Instances(200));
}

// Section 4.1 of Chen: "m(v) = 1 for nodes within each segment and m(v) = 0 for the output node of
// each segment". There are nine layers in three segments: two of the three in each are recomputed,
// including those of the last segment, which chen-sqrt keeps.
TEST_CASE("given: Chen's mirror counts for sqrt(n) segments") {
  const TensorGraph graph = GraphFromText(
      "n1:10 -> n2:10 -> n3:10 -> n4:10 -> n5:10 -> n6:10 -> n7:10 -> n8:10 -> n9:10");
  const Plan mirrored = *ValidateText(
      graph, R"({"mirror_counts": {"n1": 1, "n2": 1, "n4": 1, "n5": 1, "n7": 1, "n8": 1}})");
  CHECK(mirrored.figures.overhead == Cost(6));
  PlanRequest request;
  request.algorithm = "chen-sqrt";
  const Plan segments = *MakePlan(graph, request, {});
  CHECK(segments.figures.overhead == Cost(4));
  // The peak is n3, n6, n9, the recomputed n7 and n8, and two gradients.
  CHECK(mirrored.figures.peak == Bytes(7 * 10));
  CHECK(segments.figures.peak == Bytes(7 * 10));
}

TEST_CASE("given: a cut through branches keeps all tensors that cross it") {
  // a → b → d, a → c → d, d → e. The first segment holds only c and its ancestors, so b is in the
  // next segment, and a, which b reads, is kept.
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> d:1 -> e:1; a -> c:3 -> d");
  const Plan plan = *ValidateText(graph, R"({"checkpoints": ["c"]})");
  CHECK(StepsOf(graph, plan.schedule) == "fa fc fb fd fe loss be bd bb bc ba");
  // All of a, b and c come before d, so they are in the first segment, and only d is kept.
  const Plan last = *ValidateText(graph, R"({"checkpoints": ["d"]})");
  CHECK(last.decisions[NodeId(0)].recompute_count == 1);
  CHECK(last.figures.overhead == Cost(3));
}

TEST_CASE("given: impossible decisions are refused by name") {
  const TensorGraph graph = GraphFromText("conv1:4 -> relu1:4 -> conv2:4 -> relu2:4");
  const struct {
    const char* decisions;
    std::string message;
  } kRows[] = {
      {R"({"kept": ["relu"]})",
       "decisions: kept: no node or tensor is named \"relu\"; did you mean \"relu1\"?"},
      {R"({"kept": [9]})", "decisions: kept: there is no tensor with number 9"},
      {R"({"checkpoints": ["blocks.3"]})",
       "decisions: checkpoints: no node or tensor is named \"blocks.3\""},
      {R"({"mirror_counts": {"conv3": 1}})",
       "decisions: mirror_counts: no node or tensor is named \"conv3\"; did you mean \"conv1\"?"},
      {R"({"mirror_counts": {"conv1": 2000000000}})",
       "decisions: mirror_counts: more than 10000000 copies in total, which is the limit"},
      {R"({"lower_sets": [["conv1", "conv2"]]})",
       "decisions: lower_sets: set 1: is not a lower set: it has \"conv2\" without its input "
       "\"relu1\""},
      {R"({"lower_sets": [["conv1", "relu1"], ["relu1", "conv2"]]})",
       "decisions: lower_sets: set 2: lacks \"conv1\" of the set before it; write each set "
       "in full, or only the nodes that it adds"},
      {R"({"lower_sets": [["conv1"], ["conv1"]]})",
       "decisions: lower_sets: set 2: adds nothing to the set before it; sets must grow"},
      {R"({"order": [["f", "conv1"]]})", "decisions: schedule: \"relu1\" must run but does not"},
      {R"({"order": [["f", 0], ["f", 1], ["f", 2], ["f", 3]]})",
       "decisions: schedule: the loss must run but does not"},
      {R"({"order": [["f", 0], ["f", 1], ["f", 2], ["f", 3], ["loss"]]})",
       "decisions: schedule: the backward of \"conv1\" must run but does not"},
      {R"({"order": [["f", 1], ["f", 0], ["f", 2], ["f", 3], ["loss"], ["b", 3], ["b", 2],
                     ["b", 0], ["b", 1]]})",
       "decisions: schedule: step 0 (forward of \"relu1\") reads tensor \"conv1\", which is not in "
       "memory"},
  };
  for (const auto& row : kRows) {
    const Result<Plan> plan = ValidateText(graph, row.decisions);
    CAPTURE(std::string(row.decisions));
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code == ErrorCode::kInvalidInput);
    CHECK(plan.error().message == row.message);
  }
}

TEST_CASE(
    "given: asking for it without decisions, or for another algorithm with decisions, is an "
    "error") {
  const TensorGraph graph = GraphFromText("a:4 -> b:4");
  PlanRequest request;
  request.algorithm = "given";
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.decisions = Decisions{Decisions::Form::kKept, {{}}, {}, {}};
  CHECK(MakePlan(graph, request, {}).ok());
  for (const char* const other : {"exact-dp", "auto"}) {
    request.algorithm = other;
    CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  }
  request.algorithm = "given";
  request.decisions = *ReadDecisionsJson(
      R"({"order": [["f", 0], ["f", 1], ["loss"], ["b", 1], ["free", 1], ["b", 0], ["free", 0]]})",
      "d.json");
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.uses_liveness = false;
  CHECK(MakePlan(graph, request, {}).ok());
  request.granularity = Granularity::kLayer;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
}

TEST_CASE("given: a budget is compared with the peak of the decisions, which the error names") {
  const TensorGraph graph = GraphFromText("a:10 -> b:10 -> c:10 -> d:10");
  PlanRequest request;
  request.algorithm = "given";
  request.decisions = *ReadDecisionsJson(R"({"checkpoints": ["b"]})", "d.json");
  request.budget = Budget::Of(Bytes(50));
  CHECK(MakePlan(graph, request, {}).ok());
  request.budget = Budget::Of(Bytes(49));
  const Result<Plan> refused = MakePlan(graph, request, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInfeasible);
  CHECK(refused.error().message.find("(50 bytes") != std::string::npos);
}

TEST_CASE("given: every algorithm's plan, written as decisions, gives the same plan") {
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    // Counts of runs do not say when nodes run: these plans can only be written step by step.
    const bool is_checkmate = info.name == "checkmate";
    const bool has_only_steps = is_checkmate || info.name == "dtr" || info.name == "rotor";
    int compared = 0;
    int by_segments = 0;
    for (uint64_t seed = 1; seed <= Instances(200); ++seed) {
      CAPTURE(seed);
      const bool is_recursive = info.name == "chen-recursive";
      const TensorGraph graph = is_recursive ? ChainOf(seed) : GraphOf(seed);
      if (is_checkmate && graph.nodes().size() > 6) continue;  // Each solve is an integer program.
      PlanRequest request;
      request.algorithm = std::string(info.name);
      request.uses_liveness = seed % 5 != 0;
      const Result<Plan> plan = MakePlan(graph, request, {});
      if (!plan.ok()) continue;  // The graph is too large for the algorithm.
      ++compared;
      // The plan's file has its steps, with explicit frees if it uses them.
      const Result<Plan> stepwise =
          Judge(graph, *ReadDecisionsJson(WritePlanJson(*plan, graph), "plan.json"),
                request.uses_liveness);
      REQUIRE(stepwise.ok());
      CHECK(stepwise->schedule == plan->schedule);
      CHECK(stepwise->figures.peak == plan->figures.peak);
      CHECK(stepwise->figures.overhead == plan->figures.overhead);
      if (!request.uses_liveness || has_only_steps) continue;
      Decisions decisions = DecisionsOf(graph, *plan);
      by_segments += decisions.form == Decisions::Form::kLowerSets ? 1 : 0;
      if (is_recursive) {
        decisions = {Decisions::Form::kMirrorCounts, {}, {}, {}};
        for (const NodeId id : graph.nodes().ids()) {
          decisions.mirror_counts.push_back({IdOf(graph, id), plan->decisions[id].recompute_count});
        }
      }
      const Result<Plan> again = Judge(graph, decisions);
      REQUIRE(again.ok());
      CHECK(again->figures.peak == plan->figures.peak);
      CHECK(again->figures.overhead == plan->figures.overhead);
      CHECK(again->schedule == plan->schedule);
    }
    if (!is_checkmate || HasMipSolver()) CHECK(compared > Instances(50));
    // chen-keep-costly keeps results inside its segments as well, so its decisions are a kept set.
    const bool has_segments = info.graphs == GraphClass::kChainOfSplittingVertices &&
                              info.name != "chen-keep-costly" && !has_only_steps;
    if (has_segments) CHECK(by_segments > Instances(20));
  }
}

TEST_CASE("given: mirror counts of 0 and 1 are equal to a kept set") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = GraphOf(seed);
    Rng rng(seed);
    Decisions kept{Decisions::Form::kKept, {{}}, {}, {}};
    Decisions counts{Decisions::Form::kMirrorCounts, {}, {}, {}};
    for (const NodeId id : graph.nodes().ids()) {
      const bool is_kept = rng.Chance(50);
      counts.mirror_counts.push_back({IdOf(graph, id), is_kept ? 0 : 1});
      const TensorId output = graph.node(id).outputs.front();
      if (is_kept) kept.sets.front().push_back({"", graph.tensor(output).file_id});
    }
    CHECK(Judge(graph, kept)->schedule == Judge(graph, counts)->schedule);
    // For any counts, no node is recomputed more often than its count, and the checker accepts the
    // plan.
    for (auto& [what, count] : counts.mirror_counts) count = rng.Between(0, 4);
    const Result<Plan> plan = Judge(graph, counts);
    REQUIRE(plan.ok());
    for (const NodeId id : graph.nodes().ids()) {
      const auto at = static_cast<size_t>(id.index());
      CHECK(plan->decisions[id].recompute_count <= counts.mirror_counts[at].second);
    }
  }
}

// Orders that a user might write: a plan's steps with one left out, repeated, or moved. Each is
// refused or becomes a plan that the checker accepts; otherwise MakePlan would end the program.
TEST_CASE("given: a damaged order is refused, or is another plan") {
  int accepted = 0;
  int refused = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = GraphOf(seed);
    Rng rng(seed);
    PlanRequest request;
    request.algorithm = rng.Chance(50) ? "chen-sqrt" : "recompute-all";
    request.uses_liveness = rng.Chance(50);
    const Plan plan = *MakePlan(graph, request, {});
    Decisions order = *ReadDecisionsJson(WritePlanJson(plan, graph), "plan.json");
    std::vector<DecidedStep>& steps = order.order;
    for (int64_t changes = rng.Between(1, 3); changes > 0 && !steps.empty(); --changes) {
      const auto pick = [&] { return rng.Between(0, static_cast<int64_t>(steps.size()) - 1); };
      const int64_t at = pick();
      const DecidedStep step = steps[static_cast<size_t>(at)];
      if (rng.Chance(60)) steps.insert(steps.begin() + pick(), step);
      if (rng.Chance(50)) steps.erase(steps.begin() + at);
    }
    const Result<Plan> judged = Judge(graph, order, request.uses_liveness || !order.has_frees());
    accepted += judged.ok() ? 1 : 0;
    refused += judged.ok() ? 0 : 1;
  }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

}  // namespace ckplan
