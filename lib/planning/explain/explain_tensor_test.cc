#include "lib/planning/explain/explain_tensor.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/explain/what_if.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"

namespace ckplan {
namespace {

TensorExplanation Explain(const TrainingStep& graph, const Plan& plan, int32_t tensor) {
  int64_t work = kWhatIfSteps;
  return ExplainTensor(TracePlan(graph, plan), TensorId(tensor), &work);
}

IdVector<NodeId, bool> AllBut(const TensorGraph& graph, int32_t node) {
  IdVector<NodeId, bool> is_kept(graph.nodes().size(), true);
  is_kept[NodeId(node)] = false;
  return is_kept;
}

}  // namespace

// a ──▶ b ──▶ c ──▶ d: forward is steps 0 to 3, the loss step 4, backward of d to a steps 5 to 8.
TEST_CASE("explain tensor: kept and run again, with and without a budget") {
  const TensorGraph graph = GraphFromText("a:8@1 -> b:8@3 -> c:2@1 -> d:1@1");
  const TrainingStep planned(graph);
  Plan keep_all = KeepAllPlan(graph);
  const TensorExplanation kept = Explain(planned, keep_all, 0);
  REQUIRE(kept.stays.size() == 1);
  CHECK(kept.stays[0].since == 0);
  CHECK(kept.stays[0].until == 8);
  CHECK(kept.stays[0].reads == std::vector<int32_t>{1, 7, 8});
  REQUIRE(kept.gap.has_value());
  CHECK(kept.gap->from == 1);
  CHECK(kept.gap->to == 7);
  const Plan without_a = PlanOfKept(graph, AllBut(graph, 0));
  CHECK(kept.if_freed->peak == without_a.figures.peak);
  CHECK(kept.if_freed->overhead == Cost(1));

  Plan again = without_a;
  const TensorExplanation run_again = Explain(planned, again, 0);
  CHECK(run_again.again_at == 7);
  CHECK(run_again.if_kept->peak == keep_all.figures.peak);
  CHECK(run_again.if_kept->overhead == Cost(0));
  CHECK(run_again.reason ==
        (keep_all.figures.peak > again.figures.peak ? Reason::kHigherPeak : Reason::kAffordable));
  again.request.budget = Budget::Of(keep_all.figures.peak);
  CHECK(Explain(planned, again, 0).reason == Reason::kAffordable);
  again.request.budget = Budget::Of(keep_all.figures.peak - Bytes(1));
  CHECK(Explain(planned, again, 0).reason == Reason::kOverBudget);
}

TEST_CASE("explain tensor: constraints decide, and their cost is still measured") {
  const TensorGraph graph = GraphFromText("a:8@1 -> b:8@3 -> c:2@1 -> d:1@1");
  const TrainingStep planned(graph);
  Plan keep_all = KeepAllPlan(graph);
  const TensorExplanation free = Explain(planned, keep_all, 0);
  keep_all.request.keep = {"a"};
  const TensorExplanation kept = Explain(planned, keep_all, 0);
  CHECK(kept.reason == Reason::kToBeKept);
  CHECK(kept.if_freed->peak == free.if_freed->peak);
  // b is measured without another run of a.
  CHECK(Explain(planned, keep_all, 1).reason != Reason::kToBeKept);
  keep_all.request.keep = {};
  keep_all.request.never_rerun = {"a"};
  CHECK(Explain(planned, keep_all, 0).reason == Reason::kToRunOnce);

  Schedule again = KeepAllPlan(graph).schedule;
  again.steps.insert(again.steps.begin() + 8, Step::Forward(NodeId(0)));
  Plan plan = AssemblePlan(graph, again, IdVector<NodeId, int32_t>(graph.nodes().size()));
  plan.request.recompute = {"a"};
  const TensorExplanation recomputed = Explain(planned, plan, 0);
  CHECK(recomputed.reason == Reason::kToBeRecomputed);
  CHECK(recomputed.if_kept.has_value());
}

TEST_CASE("explain tensor: tensors that no plan decides on have a reason of their own") {
  JointGraphParts parts;
  const auto value = [&](const char* name, int64_t bytes, ValueKind kind, int32_t alias_of = -1) {
    Value added;
    added.file_id = static_cast<int64_t>(parts.values.size());
    added.name = name;
    added.bytes = Bytes(bytes);
    added.kind = kind;
    added.alias_of = ValueId(alias_of);
    return parts.values.push_back(added);
  };
  const auto op = [&](const char* name, std::vector<ValueId> reads, std::vector<ValueId> writes) {
    Operation added;
    added.file_id = static_cast<int64_t>(parts.ops.size());
    added.name = name;
    added.reads = std::move(reads);
    added.writes = std::move(writes);
    added.cost = Cost(1);
    parts.ops.push_back(added);
  };
  const ValueId weight = value("weight", 100, ValueKind::kConstant);
  const ValueId a = value("a", 8, ValueKind::kValue);
  const ValueId view = value("view", 8, ValueKind::kValue, 1);
  const ValueId nothing = value("nothing", 0, ValueKind::kValue);
  const ValueId dropped = value("dropped", 4, ValueKind::kValue);
  const ValueId b = value("b", 8, ValueKind::kValue);
  op("make a", {weight}, {a});
  op("view a", {a}, {view});
  op("nothing", {a}, {nothing});
  op("dropped", {a}, {dropped});
  op("make b", {view}, {b});
  parts.results = {b};
  const JointGraph graph = JointGraph::Create(parts).value();
  const TrainingStep planned(graph);
  const Plan plan = AssembleRuns(graph, {{OpId(0), OpId(1), OpId(2), OpId(4)}});
  CHECK(Explain(planned, plan, weight.index()).reason == Reason::kGiven);
  CHECK(Explain(planned, plan, nothing.index()).reason == Reason::kEmpty);
  CHECK(Explain(planned, plan, dropped.index()).reason == Reason::kNeverMade);
  CHECK(Explain(planned, plan, b.index()).reason == Reason::kUsedAtOnce);
  // The alias is explained by the memory that it is in, with the reads of both tensors.
  const TensorExplanation found = Explain(planned, plan, view.index());
  CHECK(found.tensor == a);
  REQUIRE(found.stays.size() == 1);
  CHECK(found.stays[0].until == 3);
  CHECK(found.stays[0].reads == std::vector<int32_t>{1, 2, 3});
}

TEST_CASE("explain tensor: reasons agree with the measurements for any plan") {
  std::map<std::string, int> count;
  for (uint64_t seed = 0; seed < Instances(600); ++seed) {
    CAPTURE(seed);
    RandomPlanned random(seed);
    Rng rng(seed);
    if (rng.Chance(50)) {
      random.plan.request.budget = Budget::Of(random.plan.figures.peak + Bytes(rng.Between(0, 9)));
    }
    const TracedPlan traced = TracePlan(*random.graph, random.plan);
    int64_t work = kWhatIfSteps;
    for (size_t i = 0; i < random.graph->tensor_count(); ++i) {
      CAPTURE(i);
      const TensorExplanation found = ExplainTensor(traced, TensorId(i), &work);
      ++count[std::string(NameOf(found.reason))];
      CHECK(random.graph->StorageOf(found.tensor) == found.tensor);
      for (const Stay& stay : found.stays) {
        CHECK(stay.since <= stay.until);
        if (!stay.reads.empty()) CHECK(stay.reads.back() <= stay.until);
      }
      const Bytes peak = random.plan.figures.peak;
      switch (found.reason) {
        case Reason::kElsewhere:
          CHECK(found.if_freed->peak == peak);
          break;
        case Reason::kInBudget:
        case Reason::kTraded:
          CHECK(found.if_freed->peak < peak);
          break;
        case Reason::kOverBudget:
          CHECK(found.if_kept->peak > random.plan.request.budget.bytes);
          break;
        case Reason::kAffordable:
          CHECK(found.if_kept->overhead <= random.plan.figures.overhead);
          break;
        default:
          break;
      }
    }
  }
  for (const char* const reason :
       {"given", "empty", "never-made", "used-at-once", "must-not-repeat", "peak-elsewhere",
        "raises-peak", "within-budget", "saves-time", "over-budget", "higher-peak", "affordable"}) {
    CAPTURE(reason);
    CHECK(count[reason] > 0);
  }
}

TEST_CASE("explain tensor: measuring stops when the work is used up") {
  const TensorGraph graph = GraphFromText("a:8@1 -> b:8@3 -> c:2@1 -> d:1@1");
  const TrainingStep planned(graph);
  const Plan plan = KeepAllPlan(graph);
  const TracedPlan traced = TracePlan(planned, plan);
  int64_t work = 1;
  CHECK(ExplainTensor(traced, TensorId(0), &work).if_freed.has_value());
  CHECK(work <= 0);
  CHECK(ExplainTensor(traced, TensorId(1), &work).reason == Reason::kNotMeasured);
}

}  // namespace ckplan
