#include "lib/planning/explain/traced_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

namespace {

constexpr int32_t kNone = -1;

// A buffer's last storage ends with the buffer; an earlier one ends where the next is written in
// place.
std::vector<int32_t> FindEnds(const TrainingStep& graph, const Timeline& timeline) {
  struct Tenant {
    TensorId storage;
    int32_t until = 0;
    int32_t since = 0;  // The step that makes its first version.
  };
  // The tenants of each buffer, from last to first.
  std::vector<Tenant> tenants(timeline.buffers.size());
  std::vector<int32_t> until(timeline.versions.size());
  for (size_t v = timeline.versions.size(); v-- > 0;) {
    const Version& version = timeline.versions[v];
    const auto buffer = static_cast<size_t>(version.buffer);
    Tenant& tenant = tenants[buffer];
    const TensorId storage = graph.StorageOf(version.tensor);
    if (tenant.storage != storage) {
      tenant.until = tenant.storage.is_none() ? timeline.buffers[buffer].last_step : tenant.since;
      tenant.storage = storage;
    }
    tenant.since = version.made_at;
    // One operation may overwrite a value and also create an alias of it.
    until[v] = std::max(tenant.until, version.last_read);
  }
  return until;
}

void FindReads(TracedPlan* traced) {
  const TrainingStep& graph = traced->graph;
  const std::vector<Version>& versions = traced->timeline.versions;
  traced->reads.resize(versions.size());
  IdVector<TensorId, int32_t> newest(graph.tensor_count(), kNone);
  IdVector<NodeId, bool> has_run(graph.node_count());
  size_t next = 0;
  for (size_t k = 0; k < traced->steps().size(); ++k) {
    PollStop();
    const Step& step = traced->steps()[k];
    const auto at = static_cast<int32_t>(k);
    for (const TensorId read : graph.ReadsOf(step)) {
      if (newest[read] == kNone) continue;
      std::vector<int32_t>& reads = traced->reads[static_cast<size_t>(newest[read])];
      if (reads.empty() || reads.back() != at) reads.push_back(at);
    }
    const bool is_run = step.kind == StepKind::kForward || step.kind == StepKind::kRun;
    traced->has_run.push_back(is_run && has_run[step.node()]);
    if (is_run) has_run[step.node()] = true;
    for (; next < versions.size() && versions[next].made_at == at; ++next) {
      newest[versions[next].tensor] = static_cast<int32_t>(next);
      const TensorId storage = graph.StorageOf(versions[next].tensor);
      traced->versions_in[storage].push_back(static_cast<int32_t>(next));
    }
  }
}

}  // namespace

std::string_view TracedPlan::NameOfKind(MemoryKind kind) const {
  return graph.is_joint() && kind == MemoryKind::kGradients ? "backward" : NameOf(kind);
}

std::string TracedPlan::NameOfStep(size_t step) const {
  return step < steps().size() ? DescribeStep(graph, steps()[step], has_run[step]) : "";
}

TracedPlan TracePlan(const TrainingStep& graph, const Plan& plan) {
  TracedPlan traced{graph, plan, {}, {}, {}, {}, {}, {}, {}};
  traced.versions_in.resize(graph.tensor_count());
  if (HasConstraints(plan.request)) {
    Result<Constraints> constraints = ConstraintsOf(graph, plan.request);
    // A plan may have constraints that the planner refuses: to keep and to recompute a tensor that
    // is never read.
    if (constraints.ok()) traced.constraints = std::move(constraints).value();
  }
  if (plan.schedule.steps.empty()) return traced;
  traced.timeline = BuildTimeline(graph, plan.schedule);
  traced.kinds = MemoryKindsOf(graph, plan.schedule, traced.timeline);
  traced.until = FindEnds(graph, traced.timeline);
  FindReads(&traced);
  return traced;
}

namespace {

// Sets the memory at the peak, counted as in drawings and explanations.
void FillMemory(const TracedPlan& traced, PlanFacts* facts) {
  if (traced.steps().empty()) return;
  const size_t peak_step = traced.timeline.peak_step;
  const StepMemory peak = TraceMemory(traced.timeline, traced.kinds)[peak_step];
  facts->kept_tensors = std::count(traced.kinds.begin(), traced.kinds.end(), MemoryKind::kKept);
  facts->kept = peak.of(MemoryKind::kKept);
  facts->recomputed = peak.of(MemoryKind::kRecomputed);
  facts->passing = peak.of(MemoryKind::kPassing);
  facts->gradients = peak.of(MemoryKind::kGradients);
  facts->workspace = peak.of(MemoryKind::kWorkspace);
  facts->loaded = peak.of(MemoryKind::kLoaded);
  facts->peak_step = traced.NameOfStep(peak_step);
}

// Groups recomputed nodes by segment or, if the plan has no segments, by operator (by name if they
// have none).
std::vector<RecomputedGroup> GroupsOf(const TrainingStep& step, const Plan& plan) {
  const bool has_segments =
      std::any_of(plan.decisions.begin(), plan.decisions.end(),
                  [](const NodeDecision& decision) { return decision.segment > 0; });
  struct Members {
    RecomputedGroup group;
    NodeId first, last;
  };
  std::map<std::pair<int32_t, std::string>, Members> members;
  for (const NodeId id : step.node_ids()) {
    const NodeDecision& decision = plan.decisions[id];
    if (decision.recompute_count == 0) continue;
    const std::string& op = step.OpOf(id).empty() ? step.RawNameOf(id) : step.OpOf(id);
    Members& m = members[{decision.segment, has_segments ? "" : op}];
    if (m.group.node_count++ == 0) m.first = id;
    m.last = id;
    m.group.overhead += decision.recompute_count * step.RunCostOf(id);
    for (const TensorId output : step.OutputsOf(id)) {
      if (step.CountsInPeak(output)) m.group.outputs += step.BytesOf(output);
    }
  }
  std::vector<RecomputedGroup> groups;
  for (auto& [key, m] : members) {
    const std::string& first = step.RawNameOf(m.first);
    const std::string& last = step.RawNameOf(m.last);
    m.group.name = !has_segments ? key.second : first == last ? first : first + " ... " + last;
    groups.push_back(std::move(m.group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.outputs, b.overhead) < std::tuple(a.outputs, a.overhead);
  });
  return groups;
}

void CountRuns(const Plan& plan, PlanFacts* facts) {
  for (const NodeDecision& decision : plan.decisions) {
    if (decision.recompute_count == 1) ++facts->run_twice;
    if (decision.recompute_count > 1) ++facts->run_more_often;
    if (decision.action == NodeAction::kDrop) ++facts->dropped;
  }
}

}  // namespace

PlanFacts FactsOf(const TrainingStep& step, const Plan& plan) {
  PlanFacts facts;
  CountRuns(plan, &facts);
  FillMemory(TracePlan(step, plan), &facts);
  facts.groups = GroupsOf(step, plan);
  return facts;
}

}  // namespace ckplan
