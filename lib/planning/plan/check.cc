#include "lib/planning/plan/check.h"

#include <fmt/format.h>

#include <utility>

#include "lib/planning/plan/check_constraints.h"
#include "lib/planning/plan/check_replay.h"
#include "lib/planning/plan/claims.h"

namespace ckplan {
namespace {

int64_t CountOtherMicroBatches(const PlanRequest& request) {
  if (!request.pipeline) return 0;
  const int64_t stages_from_here = request.pipeline->stages - request.pipeline->index;
  const bool is_filled_first = request.schedule == PipelineSchedule::kGPipe;
  const int64_t under_way = is_filled_first || request.micro_batches < stages_from_here
                                ? request.micro_batches
                                : stages_from_here;
  return under_way - 1;
}

// Builds a schedule that runs each node once, in the graph's order.
Schedule ScheduleWithoutRecomputation(const TrainingStep& step) {
  Schedule schedule;
  for (const NodeId id : step.node_ids()) schedule.steps.push_back(step.RunOf(id));
  if (step.is_joint()) return schedule;
  schedule.steps.push_back(Step::Loss());
  for (size_t i = step.node_count(); i-- > 0;) schedule.steps.push_back(Step::Backward(NodeId(i)));
  return schedule;
}

Result<Replayed> ReplaySteps(const TrainingStep& step, const Schedule& schedule,
                             const ReplayOptions& options) {
  return step.is_joint() ? ReplayRuns(step.joint(), schedule, options)
                         : ReplayNodes(step.forward(), schedule, options);
}

std::string Describe(const TrainingStep& step, const LiveBuffer& buffer) {
  switch (buffer.kind) {
    case BufferKind::kWorkspace:
      return fmt::format("the workspace of \"{}\"", step.RawNameOf(buffer.node()));
    case BufferKind::kGradient:
      return fmt::format("the gradient of \"{}\"", step.RawNameOf(buffer.tensor()));
    case BufferKind::kTensor:
      break;
  }
  return fmt::format("\"{}\"", step.RawNameOf(buffer.tensor()));
}

void CompareRows(const TrainingStep& step, const Plan& plan, const Replayed& replay,
                 std::vector<std::string>* faults) {
  const std::string_view word = step.node_word();
  const size_t count = step.node_count();
  if (plan.decisions.size() != count || plan.labels.size() != count) {
    faults->push_back(
        fmt::format("the plan has decisions for {} {}s and names for {}, but the graph has {}",
                    plan.decisions.size(), word, plan.labels.size(), count));
    return;
  }
  for (const NodeId id : step.node_ids()) {
    const NodeDecision& claimed = plan.decisions[id];
    const NodeDecision& found = replay.decisions[id];
    if (claimed.recompute_count != found.recompute_count || claimed.action != found.action) {
      faults->push_back(fmt::format(
          "{} \"{}\": the plan says {} with {} recomputations, but its steps say {} with {}", word,
          step.RawNameOf(id), NameOf(claimed.action), claimed.recompute_count, NameOf(found.action),
          found.recompute_count));
    }
    if (step.is_joint() && claimed.segment != 0) {
      faults->push_back(fmt::format("{} \"{}\": in segment {}, but the plan has no segments", word,
                                    step.RawNameOf(id), claimed.segment));
    }
    const std::string_view field = DifferenceOf(plan.labels[id], LabelOf(step, id));
    if (field.empty()) continue;
    faults->push_back(fmt::format("{} \"{}\": the plan's \"{}\" differs from the graph's", word,
                                  step.RawNameOf(id), field));
  }
}

void CompareFigures(const GraphFigures& graph, const Plan& plan, const Replayed& replay, Bytes peak,
                    std::vector<std::string>* faults) {
  const PlanFigures& figures = plan.figures;
  CompareClaim("peak_bytes", figures.peak, peak, faults);
  CompareClaim("arena_bytes", figures.arena, replay.slab.end(), faults);
  CompareClaim("overhead_cost", figures.overhead, replay.overhead, faults);
  CompareClaim("forward_cost", figures.forward_cost, graph.forward_cost, faults);
  CompareClaim("backward_cost", figures.backward_cost, graph.backward_cost, faults);
  CompareConstants(graph.constants, graph.optimized, plan, faults);
  CheckLowerBound(figures, replay.overhead, graph.least_overhead, faults);
  CheckCertificate(plan, replay.overhead, graph.least_overhead, peak, replay.is_own_order, faults);
  CheckCurve(plan, graph.forward_cost + graph.backward_cost, faults);
}

// Checks the plan's figures about the host.
void CompareOffload(const TrainingStep& step, const Plan& plan, const Moves& moves,
                    std::vector<std::string>* faults) {
  const std::optional<OffloadFigures>& claimed = plan.figures.offload;
  if (claimed.has_value() != plan.request.offload.has_value()) {
    faults->push_back(claimed ? "host_peak_bytes: must be absent without offload"
                              : "host_peak_bytes: missing");
    return;
  }
  if (!claimed) {
    if (!plan.host_offsets.empty())
      faults->push_back("host_offset_bytes: must be empty without offload");
    return;
  }
  const Result<HostMemory> host =
      LayOutOnHost(step.joint(), moves.on_host, plan.host_offsets, plan.request.align_bytes);
  if (!host.ok()) return faults->push_back(host.error().message);
  CompareClaim("host_peak_bytes", claimed->host_peak, host->highest, faults);
  CompareClaim("host_arena_bytes", claimed->host_arena, host->end, faults);
  CompareClaim("stall_cost", claimed->stall, moves.waiting, faults);
  CompareClaim("transfer_bytes", claimed->transferred, moves.moved, faults);
  const std::optional<Bytes>& budget = plan.request.host_budget;
  if (budget && host->highest > *budget) {
    faults->push_back(fmt::format("the host's peak of {} bytes is above its budget of {} bytes",
                                  host->highest.count(), budget->count()));
  }
}

}  // namespace

std::vector<std::string> CheckPlan(const TrainingStep& step, const Plan& plan) {
  const Link* const link = plan.request.offload ? &*plan.request.offload : nullptr;
  if (link != nullptr && !step.is_joint()) return {"offload: requires a joint graph"};
  const Result<Replayed> replay = ReplaySteps(
      step, plan.schedule,
      {plan.request.order == StepOrder::kFree, link, &plan.offsets, plan.request.align_bytes});
  if (!replay.ok()) return {replay.error().message};
  const Result<Replayed> baseline = ReplaySteps(step, ScheduleWithoutRecomputation(step), {});
  if (!baseline.ok()) return {"without recomputation: " + baseline.error().message};
  const int64_t others = CountOtherMicroBatches(plan.request);
  if (others + 1 != step.micro_batches()) {
    return {fmt::format("the plan is for {} micro-batches in flight, but the graph for {}",
                        others + 1, step.micro_batches())};
  }
  std::vector<std::string> faults;
  const Bytes peak = replay->slab.highest() + others * replay->saved;
  CompareClaim("baseline_peak_bytes", plan.figures.baseline_peak,
               baseline->slab.highest() + others * baseline->saved, &faults);
  CompareClaim("other_micro_batches_bytes", plan.figures.other_micro_batches,
               others * replay->saved, &faults);
  CompareFigures(step.is_joint() ? FiguresOf(step.joint()) : FiguresOf(step.forward()), plan,
                 *replay, peak, &faults);
  if (plan.figures.static_allocations.has_value() == step.is_joint()) {
    faults.emplace_back(step.is_joint() ? "static_allocation_bytes: not defined for joint graphs"
                                        : "static_allocation_bytes: missing");
  }
  if (plan.offsets.size() != replay->slab.allocations()) {
    faults.push_back(fmt::format("the arena has {} offsets for {} buffers", plan.offsets.size(),
                                 replay->slab.allocations()));
  }
  CompareRequest(plan, peak, &faults);
  CompareOffload(step, plan, replay->moves, &faults);
  for (std::string& broken : BrokenConstraints(step, plan.request, plan.schedule)) {
    faults.push_back(std::move(broken));
  }
  ComparePeak(
      plan, replay->peak_step, replay->slab.AtPeak(),
      [&](const LiveBuffer& buffer) { return Describe(step, buffer); }, &faults);
  CompareRows(step, plan, *replay, &faults);
  return faults;
}

}  // namespace ckplan
