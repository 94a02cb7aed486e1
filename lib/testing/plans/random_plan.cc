#include "lib/testing/plans/random_plan.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/plans/requests.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {

namespace {

Schedule MeaninglessSchedule(Rng& rng, const TensorGraph& graph) {
  Schedule schedule;
  const auto nodes = static_cast<int64_t>(graph.nodes().size());
  const auto tensors = static_cast<int64_t>(graph.tensors().size());
  schedule.frees = rng.Chance(50) ? FreePolicy::kExplicit : FreePolicy::kLiveness;
  for (int64_t i = 0; i < 3 * nodes; ++i) {
    const NodeId node(static_cast<size_t>(rng.Between(0, nodes - 1)));
    schedule.steps.push_back(rng.Chance(50) ? Step::Forward(node) : Step::Backward(node));
    const TensorId tensor(static_cast<size_t>(rng.Between(0, tensors - 1)));
    if (rng.Chance(20)) schedule.steps.push_back(Step::Free(tensor));
    if (i == nodes) schedule.steps.push_back(Step::Loss());
  }
  return schedule;
}

}  // namespace

PeakMoment RandomPeak(Rng& rng, const TensorGraph& graph) {
  PeakMoment peak{static_cast<int32_t>(rng.Between(0, 100)), {}};
  for (int64_t i = rng.Between(0, 30); i > 0; --i) {
    const Bytes bytes(rng.Between(0, int64_t{1} << 40));
    const NodeId node(
        static_cast<size_t>(rng.Between(0, static_cast<int64_t>(graph.nodes().size()) - 1)));
    const TensorId tensor = graph.node(node).outputs.front();
    peak.live.push_back(rng.Chance(60)   ? LiveBuffer::Tensor(tensor, bytes)
                        : rng.Chance(50) ? LiveBuffer::Gradient(tensor, bytes)
                                         : LiveBuffer::Workspace(node, bytes));
  }
  return peak;
}

Plan RandomPlan(Rng& rng, const TensorGraph& graph) {
  const auto bytes = [&] { return Bytes(rng.Between(0, int64_t{1} << 40)); };
  const auto cost = [&] { return Cost(rng.Between(0, int64_t{1} << 40)); };
  Plan plan;
  plan.request = FullRequest();
  for (const RequestField& field : RequestFields()) {
    const bool may_be_absent = field.in_file != RequestField::InFile::kRequired ||
                               std::holds_alternative<bool PlanRequest::*>(field.member) ||
                               std::holds_alternative<Budget PlanRequest::*>(field.member);
    const bool is_never_in_file = field.in_file == RequestField::InFile::kNever;
    if (is_never_in_file || (may_be_absent && rng.Chance(50))) ResetField(field, &plan.request);
  }
  plan.model = {"net.onnx", "5f3a", {{"", 17}, {"ai.onnx.ml", 3}}};
  PlanFigures& figures = plan.figures;
  figures.is_optimal = rng.Chance(50);
  figures.guarantee = "optimal for Eq. 2 \xe2\x80\x94 \"costs\" rounded to 17\xc2\xa0ns\n";
  figures.peak = bytes(), figures.baseline_peak = bytes(), figures.arena = bytes();
  if (rng.Chance(50)) figures.static_allocations = {bytes(), bytes(), bytes()};
  figures.overhead = cost(), figures.forward_cost = cost(), figures.backward_cost = cost();
  if (rng.Chance(50)) figures.lower_bound_cost = cost();
  if (rng.Chance(50)) {
    figures.certificate = {static_cast<OverheadProof>(rng.Between(0, 5)),
                           static_cast<BoundScope>(rng.Between(0, 2)),
                           cost(),
                           {bytes(), static_cast<PeakProof>(rng.Between(0, 3)),
                            static_cast<BoundScope>(rng.Between(0, 2))},
                           bytes()};
  }
  for (int i = rng.Chance(50) ? 3 : 0; i > 0; --i) figures.curve.push_back({bytes(), cost()});
  if (rng.Chance(50)) figures.other_micro_batches = bytes();
  figures.constants = {bytes(), bytes(), bytes(), rng.Chance(50) ? bytes() : Bytes(0)};
  figures.optimizer_state = bytes();
  if (rng.Chance(50)) figures.paper.budget = bytes();
  figures.paper.peak = bytes(), figures.paper.overhead = cost();
  if (rng.Chance(50)) figures.setting = {"B", bytes().count()};
  // A plan file has a host budget only with offloading.
  if (!plan.request.offload) plan.request.host_budget.reset();
  if (plan.request.offload) {
    figures.offload = {bytes(), bytes(), cost(), bytes()};
    for (int i = 0; i < 3; ++i) plan.host_offsets.push_back(bytes());
  }
  for ([[maybe_unused]] const NodeId id : graph.nodes().ids()) {
    plan.decisions.push_back({static_cast<NodeAction>(rng.Between(0, 2)),
                              static_cast<int32_t>(rng.Between(0, 3)),
                              static_cast<int32_t>(rng.Between(0, 2))});
  }
  plan.labels = LabelsOf(graph);
  plan.schedule = MeaninglessSchedule(rng, graph);
  if (rng.Chance(80)) {
    plan.peak = RandomPeak(rng, graph);
    plan.figures.peak = plan.figures.other_micro_batches;
    for (const LiveBuffer& buffer : plan.peak->live) plan.figures.peak += buffer.bytes;
  }
  for (int i = 0; i < 40; ++i) plan.offsets.push_back(bytes());
  return plan;
}

namespace {

// Keeps each node with a probability of 60 %.
Plan RandomKeptPlan(Rng& rng, const TensorGraph& graph) {
  IdVector<NodeId, bool> is_kept;
  for (size_t i = 0; i < graph.nodes().size(); ++i) is_kept.push_back(rng.Chance(60));
  return PlanOfKept(graph, std::move(is_kept));
}

}  // namespace

Plan PlanOfKept(const TensorGraph& graph, IdVector<NodeId, bool> is_kept) {
  const Schedule schedule = LowerStrategy(graph, KeptSet{std::move(is_kept)});
  return AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(graph.nodes().size(), 0));
}

Plan KeepAllPlan(const TensorGraph& graph) {
  return PlanOfKept(graph, IdVector<NodeId, bool>(graph.nodes().size(), true));
}

RandomPlanned::RandomPlanned(uint64_t seed) {
  Rng rng(seed);
  if (rng.Chance(50)) {
    joint = std::make_unique<JointGraph>(RandomJointGraph(rng));
    plan = AssembleRuns(*joint, RandomRuns(rng, *joint));
    graph.emplace(*joint);
  } else {
    forward = std::make_unique<TensorGraph>(RandomTensorGraph(rng));
    plan = RandomKeptPlan(rng, *forward);
    graph.emplace(*forward);
  }
}

RandomMoved::RandomMoved(uint64_t seed) {
  Rng rng(seed);
  while (true) {
    graph.emplace(RandomJointGraph(rng));
    link = RandomLink(rng);
    step.emplace(TrainingStep(*graph).WithLink(&link));
    const Schedule schedule = RandomMoves(rng, *graph);
    if (!HasTransfers(schedule) || !Simulator(*step).Run(schedule).ok()) continue;
    plan = AssemblePlan(*step, schedule);
    plan.request.offload = link;
    return;
  }
}

}  // namespace ckplan
