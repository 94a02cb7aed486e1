#include "lib/planning/plan/check_moves.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/naive_moves.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

const Link kLink{"pcie4", 1'000'000'000, 1'000'000'000, 1, Duplex::kFull};
const ValueId kA(0);

// a (8 bytes) ─▶ b (2) ─▶ c (1) ─▶ d (2), which reads a as well; d is the result.
JointGraph Skip() {
  return GraphOfOps({{"a", 8, 10, {}}, {"b", 2, 20, {0}}, {"c", 1, 30, {1}}, {"d", 2, 5, {0, 2}}},
                    2);
}

Step Op(int32_t op) { return Step::Run(OpId(op)); }

// a leaves while b runs, and comes back before d.
const std::vector<Step>& Moved() {
  static const std::vector<Step> steps = {Op(0), Step::Out(kA), Op(1), Step::Drop(kA),
                                          Op(2), Step::In(kA),  Op(3)};
  return steps;
}

// The plan of a schedule, by an algorithm that proves nothing.
Plan MovedPlan(const JointGraph& graph, const Schedule& schedule, const Link& link) {
  Plan plan = AssemblePlan(TrainingStep(graph).WithLink(&link), schedule, {}, PlaceTightly);
  plan.request.algorithm = "dtr";
  plan.request.offload = link;
  return plan;
}

std::string Faults(const JointGraph& graph, const Plan& plan) {
  std::string text;
  for (const std::string& fault : CheckPlan(graph, plan)) text += fault + "\n";
  return text;
}

}  // namespace

TEST_CASE("check moves: the checker judges random schedules as the definition does") {
  int valid = 0;
  int invalid = 0;
  for (uint64_t seed = 0; seed < Instances(4000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(2, 10));
    options.alias = 30;
    const JointGraph graph = RandomJointGraph(rng, options);
    const Link link = RandomLink(rng);
    const Schedule schedule = RandomMoves(rng, graph);
    const std::optional<NaiveFigures> naive = NaiveMoves(graph, schedule, link).Measure();
    if (naive) {
      ++valid;
      CHECK(Faults(graph, MovedPlan(graph, schedule, link)) == "");
      continue;
    }
    ++invalid;
    Plan plan = MovedPlan(graph, ScheduleOfRuns(OwnOrder(graph)), link);
    plan.schedule = schedule;
    CHECK(CheckPlan(graph, plan).size() == 1);
  }
  CHECK(valid > Instances(2000));
  CHECK(invalid > Instances(400));
}

TEST_CASE("check moves: every rule of transfers has a schedule that is refused") {
  const Step out = Step::Out(kA);
  const Step drop = Step::Drop(kA);
  const Step in = Step::In(kA);
  const struct {
    std::string fault;
    std::vector<Step> steps;
  } kRows[] = {
      {"step 5: \"d\" reads \"a\", which is on the host", {Op(0), out, Op(1), drop, Op(2), Op(3)}},
      {"step 0: \"a\" is copied to the host but is not in memory",
       {out, Op(0), Op(1), Op(2), Op(3)}},
      {"step 3: \"a\" is copied to the host but is not in memory",
       {Op(0), out, drop, out, Op(1), Op(2), Op(3)}},
      {"step 2: \"a\" is copied to the host twice without a drop",
       {Op(0), out, out, drop, in, Op(1), Op(2), Op(3)}},
      {"step 2: \"a\" is copied back while it is copied to the host",
       {Op(0), out, in, drop, Op(1), Op(2), Op(3)}},
      {"step 2: \"a\" overwrites \"a\" while it is copied to the host",
       {Op(0), out, Op(0), drop, in, Op(1), Op(2), Op(3)}},
      {"step 1: \"a\" is dropped, but no copy of it is in progress",
       {Op(0), drop, Op(1), Op(2), Op(3)}},
      {"step 3: \"a\" is dropped, but no copy of it is in progress",
       {Op(0), out, drop, drop, in, Op(1), Op(2), Op(3)}},
      {"step 1: \"a\" is copied back but is not on the host", {Op(0), in, Op(1), Op(2), Op(3)}},
      {"\"a\" is copied to the host but never dropped", {Op(0), Op(1), Op(2), out, Op(3)}},
      {"step 4: \"a\" is copied back, but no run reads it",
       {Op(0), Op(1), out, drop, in, Op(2), in, Op(3)}},
      {"step 4: \"d\" holds a result, which must stay",
       {Op(0), Op(1), Op(2), Op(3), Step::Out(ValueId(3)), Step::Drop(ValueId(3))}},
      {"step 1: the graph has no value number 9", {Op(0), Step::Out(ValueId(9)), Op(1)}},
      {"step 1: the graph has no value number -1", {Op(0), Step::Drop(ValueId()), Op(1)}},
  };
  const JointGraph graph = Skip();
  for (const auto& row : kRows) {
    CAPTURE(row.fault);
    Plan plan = MovedPlan(graph, {Moved()}, kLink);
    plan.schedule.steps = row.steps;
    CHECK(Faults(graph, plan) == row.fault + "\n");
  }
}

TEST_CASE("check moves: aliases, constants and arriving gradients stay where they are") {
  JointGraphParts parts = PartsOf(Skip());
  parts.values[ValueId(1)].alias_of = kA;
  parts.values[ValueId(2)].kind = ValueKind::kArrivingGradient;
  Value x;
  x.file_id = 9;
  x.name = "x";
  x.kind = ValueKind::kConstant;
  const ValueId constant = parts.values.push_back(x);
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const auto fault = [&](ValueId value) {
    Plan plan = MovedPlan(graph, ScheduleOfRuns(OwnOrder(graph)), kLink);
    plan.schedule.steps.insert(plan.schedule.steps.begin() + 3,
                               {Step::Out(value), Step::Drop(value)});
    return Faults(graph, plan);
  };
  CHECK(fault(ValueId(1)) == "step 3: \"b\" has no memory of its own to move\n");
  CHECK(fault(ValueId(2)) == "step 3: \"c\" holds a result, which must stay\n");
  CHECK(fault(constant) == "step 3: \"x\" counts as a constant\n");
}

TEST_CASE("check moves: aliases leave and come back with their value, and what reads them waits") {
  // b is an alias of a, and d reads it.
  JointGraphParts parts = PartsOf(
      GraphOfOps({{"a", 8, 10, {}}, {"b", 8, 20, {0}}, {"c", 1, 5, {}}, {"d", 2, 5, {1, 2}}}, 2));
  parts.values[ValueId(1)].alias_of = kA;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const std::vector<Step> steps = {Op(0), Op(1),        Step::Out(kA), Step::Drop(kA),
                                   Op(2), Step::In(kA), Op(3)};
  Plan plan = MovedPlan(graph, {steps}, kLink);
  REQUIRE(Faults(graph, plan) == "");
  CHECK(plan.figures.offload->stall == Cost(18));
  plan.figures.offload->stall = Cost(9);  // As if d did not wait for the copy back.
  CHECK(Faults(graph, plan) == "stall_cost: the plan says 9, the replay finds 18\n");
  plan = MovedPlan(graph, {steps}, kLink);
  std::erase(plan.schedule.steps, Step::In(kA));
  CHECK(Faults(graph, plan) == "step 5: \"d\" reads \"b\", which is on the host\n");
}

TEST_CASE("check moves: what is copied out may not be written over before its drop") {
  // b has the size of a, and may take over its memory where b is the last to read it.
  JointGraphParts parts = PartsOf(
      GraphOfOps({{"a", 8, 10, {}}, {"b", 8, 20, {0}}, {"c", 1, 5, {1}}, {"d", 2, 5, {0, 2}}}));
  parts.ops[OpId(1)].in_place = {{ValueId(1), kA}};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const std::vector<Step> steps = {Op(0), Step::Out(kA), Op(1), Step::Drop(kA),
                                   Op(2), Step::In(kA),  Op(3)};
  Plan plan = MovedPlan(graph, {steps}, kLink);
  REQUIRE(Faults(graph, plan) == "");
  CHECK(plan.figures.peak == Bytes(16));
  plan.offsets[1] = plan.offsets[0];
  const std::string faults = Faults(graph, plan);
  CAPTURE(faults);
  CHECK(faults.find("step 2: in the arena, \"b\" overlaps \"a\"") != std::string::npos);
}

TEST_CASE("check moves: a copy takes the link that the plan names") {
  // b leaves while a comes back.
  const JointGraph graph =
      GraphOfOps({{"a", 8, 10, {}}, {"b", 4, 20, {0}}, {"c", 1, 30, {1}}, {"d", 2, 5, {0, 1, 2}}});
  const ValueId b(1);
  const Schedule schedule{{Op(0), Step::Out(kA), Op(1), Step::Drop(kA), Op(2), Step::Out(b),
                           Step::In(kA), Step::Drop(b), Step::In(b), Op(3)}};
  const Plan plan = MovedPlan(graph, schedule, kLink);
  REQUIRE(Faults(graph, plan) == "");
  CHECK(plan.figures.offload->stall == Cost(14));
  const std::function<void(Link*)> damages[] = {
      [](Link* link) { link->duplex = Duplex::kHalf; },
      [](Link* link) { link->latency_ns = 0; },
      [](Link* link) { link->out_bytes_per_second /= 10; },
      [](Link* link) { link->in_bytes_per_second *= 2; },
  };
  for (const auto& damage : damages) {
    Plan damaged = plan;
    damage(&*damaged.request.offload);
    CHECK(Faults(graph, damaged).find("overhead_cost: the plan says 14") != std::string::npos);
  }
}

TEST_CASE("check moves: no damage to the figures of a plan with transfers passes") {
  const struct {
    std::string what;
    std::function<void(Plan*)> damage;
  } kRows[] = {
      {"step 1: a transfer, but the plan has no link", [](Plan* p) { p->request.offload.reset(); }},
      {"host_peak_bytes: missing", [](Plan* p) { p->figures.offload.reset(); }},
      {"peak_bytes: the plan says 10, the replay finds 11",
       [](Plan* p) { p->figures.peak = Bytes(10); }},
      {"overhead_cost: the plan says 0, the replay finds 9",
       [](Plan* p) { p->figures.overhead = Cost(0); }},
      {"overhead_cost: the plan says 9, the replay finds 90",
       [](Plan* p) { p->request.offload->in_bytes_per_second = 90'909'090; }},
      {"stall_cost: the plan says 8, the replay finds 9",
       [](Plan* p) { p->figures.offload->stall = Cost(8); }},
      {"host_peak_bytes: the plan says 7, the replay finds 8",
       [](Plan* p) { p->figures.offload->host_peak = Bytes(7); }},
      {"host_arena_bytes: the plan says 9, the replay finds 8",
       [](Plan* p) { p->figures.offload->host_arena = Bytes(9); }},
      {"transfer_bytes: the plan says 8, the replay finds 16",
       [](Plan* p) { p->figures.offload->transferred = Bytes(8); }},
      {"the host has 0 offsets for 1 copies", [](Plan* p) { p->host_offsets.clear(); }},
      {"is negative", [](Plan* p) { p->host_offsets[0] = Bytes(-1); }},
      {"the host's peak of 8 bytes is above its budget of 7 bytes",
       [](Plan* p) { p->request.host_budget = Bytes(7); }},
  };
  const JointGraph graph = Skip();
  for (const auto& row : kRows) {
    CAPTURE(row.what);
    Plan plan = MovedPlan(graph, {Moved()}, kLink);
    REQUIRE(Faults(graph, plan) == "");
    row.damage(&plan);
    const std::string faults = Faults(graph, plan);
    CAPTURE(faults);
    CHECK(faults.find(row.what) != std::string::npos);
  }
}

TEST_CASE("check moves: a plan without a link says nothing about the host") {
  const JointGraph graph = Skip();
  Plan plan = AssembleRuns(graph, OwnOrder(graph));
  plan.request.algorithm = "dtr";
  REQUIRE(Faults(graph, plan) == "");
  plan.host_offsets = {Bytes(0)};
  CHECK(Faults(graph, plan) == "host_offset_bytes: must be empty without offload\n");
  plan.host_offsets.clear();
  plan.figures.offload.emplace();
  CHECK(Faults(graph, plan) == "host_peak_bytes: must be absent without offload\n");
}

TEST_CASE("check moves: copies that are on the host together may not overlap") {
  // a and b are on the host while c runs.
  const JointGraph graph =
      GraphOfOps({{"a", 8, 10, {}}, {"b", 4, 20, {0}}, {"c", 1, 30, {1}}, {"d", 2, 5, {0, 1, 2}}});
  const ValueId b(1);
  Plan plan = MovedPlan(graph,
                        {{Op(0), Step::Out(kA), Op(1), Step::Drop(kA), Op(2), Step::Out(b),
                          Step::Drop(b), Step::In(kA), Step::In(b), Op(3)}},
                        kLink);
  REQUIRE(Faults(graph, plan) == "");
  CHECK(plan.figures.offload->host_peak == Bytes(12));
  CHECK(plan.figures.offload->host_arena == Bytes(12));
  std::fill(plan.host_offsets.begin(), plan.host_offsets.end(), Bytes(0));
  CHECK(Faults(graph, plan).find("\"b\" on the host overlaps \"a\" on the host") !=
        std::string::npos);
}

TEST_CASE("check moves: kept, recomputed and named values stay on the device") {
  const JointGraph graph = Skip();
  const auto broken = [&](NamePatterns PlanRequest::*field, const std::string& pattern) {
    Plan plan = MovedPlan(graph, {Moved()}, kLink);
    plan.request.*field = {pattern};
    return Faults(graph, plan);
  };
  CHECK(broken(&PlanRequest::keep, "a") ==
        "constraints: step 1: \"a\" is copied to the host, but must be kept\n");
  CHECK(broken(&PlanRequest::recompute, "a")
            .find("step 1: \"a\" is copied to the host, but must be recomputed") !=
        std::string::npos);
  CHECK(broken(&PlanRequest::never_offload, "op:a") ==
        "constraints: step 1: \"a\" is copied to the host, but must never be on the host\n");
  CHECK(broken(&PlanRequest::never_offload, "b") == "");
  CHECK(broken(&PlanRequest::never_offload, "e") ==
        "constraints: request.never_offload: nothing is called \"e\"\n");
}

}  // namespace ckplan
