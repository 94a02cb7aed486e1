#include "lib/explain/planned_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/unique_list.h"
#include "lib/graph/module_path.h"
#include "lib/joint/run_timeline.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble_joint.h"
#include "lib/plan/node_name.h"
#include "lib/schedule/simulate.h"
#include "lib/schedule/unread_runs.h"

namespace ckplan {
namespace {

const std::vector<TensorId> kNothing;

std::string ShownName(std::string_view name, int64_t file_id) {
  return name.empty() ? fmt::format("tensor {}", file_id) : std::string(name);
}

class PlannedTensorGraph : public PlannedGraph {
 public:
  PlannedTensorGraph(const TensorGraph& graph, const ModuleCalls* modules)
      : graph_(graph), modules_(modules != nullptr && !modules->empty() ? modules : nullptr) {}

  bool is_joint() const override { return false; }
  size_t node_count() const override { return graph_.nodes().size(); }
  size_t tensor_count() const override { return graph_.tensors().size(); }
  std::string NameOf(NodeId node) const override { return ckplan::ShownName(graph_, node); }
  std::string NameOf(TensorId id) const override {
    return ShownName(graph_.tensor(id).name, graph_.tensor(id).file_id);
  }
  std::string_view OpOf(NodeId node) const override { return graph_.node(node).op; }
  std::vector<std::string> ModulesOf(NodeId node) const override {
    if (modules_ == nullptr) return ModulesInName(graph_.node(node).name);
    const int32_t call = modules_->call_of[node];
    if (call < 0) return {};
    return ModulesOnPath(modules_->call(call).path);
  }

  NodeId MakerOf(TensorId tensor) const override { return graph_.tensor(tensor).producer; }
  TensorId StorageOf(TensorId tensor) const override { return tensor; }
  Bytes BytesOf(TensorId tensor) const override { return graph_.tensor(tensor).bytes; }
  bool CountsInPeak(TensorId tensor) const override { return !graph_.is_input(tensor); }
  const std::vector<TensorId>& OutputsOf(NodeId node) const override {
    return graph_.node(node).outputs;
  }
  Cost RunCostOf(NodeId node) const override { return graph_.node(node).forward_cost; }
  Cost CostOf(const Step& step) const override {
    if (step.kind == StepKind::kForward) return graph_.node(step.node()).forward_cost;
    return step.kind == StepKind::kBackward ? graph_.node(step.node()).backward_cost : Cost(0);
  }
  bool MayRunAgain(NodeId /*node*/) const override { return true; }
  Result<Constraints> ConstraintsOf(const PlanRequest& request) const override {
    return ckplan::ConstraintsOf(graph_, request);
  }

  Step RunOf(NodeId node) const override { return Step::Forward(node); }
  const std::vector<TensorId>& ReadsOf(const Step& step) const override {
    if (step.kind == StepKind::kForward) return graph_.node(step.node()).inputs;
    if (step.kind == StepKind::kBackward) return graph_.node(step.node()).backward_reads;
    return step.kind == StepKind::kLoss ? graph_.outputs() : kNothing;
  }
  const std::vector<TensorId>& MakesOf(const Step& step) const override {
    return step.kind == StepKind::kForward ? graph_.node(step.node()).outputs : kNothing;
  }
  bool IsBackward(const Step& step) const override { return step.kind == StepKind::kBackward; }
  Bytes OwnNeedOf(const Step& step) const override {
    std::vector<TensorId> needed;
    UniqueAppender appender(needed);
    for (const TensorId read : ReadsOf(step)) {
      if (!graph_.is_input(read)) appender.Append(read);
    }
    for (const TensorId made : MakesOf(step)) appender.Append(made);
    Bytes sum;
    for (const TensorId tensor : needed) sum += BytesOf(tensor);
    if (step.kind == StepKind::kBackward) sum += graph_.node(step.node()).backward_workspace;
    if (step.kind != StepKind::kForward) return sum;
    const Node& node = graph_.node(step.node());
    Bytes in_place;  // Only one output is written in place.
    for (const InPlacePair& pair : node.in_place) {
      if (BytesOf(pair.output) == BytesOf(pair.input)) {
        in_place = std::max(in_place, BytesOf(pair.output));
      }
    }
    return sum + node.forward_workspace - in_place;
  }

  Schedule KeepAll() const override { return KeepAllInOwnOrder(graph_); }
  Timeline TimelineOf(const Schedule& schedule) const override {
    return BuildTimeline(graph_, schedule);
  }
  std::vector<MemoryKind> KindsOf(const Schedule& /*schedule*/,
                                  const Timeline& timeline) const override {
    std::vector<MemoryKind> kinds;
    kinds.reserve(timeline.versions.size());
    for (const Version& version : timeline.versions) kinds.push_back(KindOf(timeline, version));
    return kinds;
  }
  Result<Measured> Measure(const Schedule& schedule) const override {
    CKPLAN_ASSIGN_OR_RETURN(const Simulation found, Simulator(graph_).Run(schedule));
    return Measured{found.peak, found.peak_step, found.overhead};
  }
  Schedule WithoutUnreadRuns(const Schedule& schedule) const override {
    return ckplan::WithoutUnreadRuns(graph_, schedule);
  }

 private:
  const TensorGraph& graph_;
  const ModuleCalls* modules_;
};

class PlannedJointGraph : public PlannedGraph {
 public:
  explicit PlannedJointGraph(const JointGraph& graph)
      : graph_(graph),
        has_backward_(std::any_of(graph.ops().begin(), graph.ops().end(), [](const Operation& op) {
          return op.phase == Phase::kBackward;
        })) {}

  bool is_joint() const override { return true; }
  size_t node_count() const override { return graph_.ops().size(); }
  size_t tensor_count() const override { return graph_.values().size(); }
  std::string NameOf(NodeId op) const override { return ckplan::ShownName(graph_, op); }
  std::string NameOf(TensorId id) const override {
    return ShownName(graph_.value(id).name, graph_.value(id).file_id);
  }
  std::string_view OpOf(NodeId op) const override { return graph_.op(op).op; }
  std::vector<std::string> ModulesOf(NodeId id) const override {
    const Operation& op = graph_.op(id);
    if (op.module.empty()) return ModulesInName(op.name);
    return ModulesOnPath(op.module, op.module.find('/') == std::string::npos ? '.' : '/');
  }

  NodeId MakerOf(TensorId value) const override { return graph_.value(value).maker; }
  TensorId StorageOf(TensorId value) const override { return graph_.value(value).storage; }
  Bytes BytesOf(TensorId value) const override { return graph_.value(value).bytes; }
  bool CountsInPeak(TensorId id) const override {
    const Value& value = graph_.value(id);
    return value.alias_of.is_none() && IsCountedInPeak(value.kind) && !value.maker.is_none();
  }
  const std::vector<TensorId>& OutputsOf(NodeId op) const override { return graph_.op(op).writes; }
  Cost RunCostOf(NodeId op) const override { return graph_.op(op).cost; }
  Cost CostOf(const Step& step) const override { return RunCostOf(step.node()); }
  bool MayRunAgain(NodeId op) const override { return graph_.op(op).may_repeat; }
  Result<Constraints> ConstraintsOf(const PlanRequest& request) const override {
    return ckplan::ConstraintsOf(graph_, request);
  }

  Step RunOf(NodeId op) const override { return Step::Run(op); }
  const std::vector<TensorId>& ReadsOf(const Step& step) const override {
    return graph_.op(step.node()).reads;
  }
  const std::vector<TensorId>& MakesOf(const Step& step) const override {
    return graph_.op(step.node()).writes;
  }
  bool IsBackward(const Step& step) const override {
    return graph_.op(step.node()).phase == Phase::kBackward;
  }
  Bytes OwnNeedOf(const Step& step) const override {
    const Operation& op = graph_.op(step.node());
    std::vector<TensorId> needed;
    UniqueAppender appender(needed);
    for (const std::vector<TensorId>* values : {&op.reads, &op.writes}) {
      for (const TensorId value : *values) appender.Append(StorageOf(value));
    }
    Bytes sum = op.workspace;
    for (const TensorId value : needed) sum += graph_.counted_bytes(value);
    std::vector<TensorId> written;
    UniqueAppender in_place(written);
    for (const InPlaceWrite& pair : op.in_place) {
      if (BytesOf(pair.write) == BytesOf(pair.read)) in_place.Append(pair.write);
    }
    for (const TensorId write : written) sum -= graph_.counted_bytes(write);
    return sum;
  }

  Schedule KeepAll() const override {
    Schedule schedule;
    for (const OpId op : OwnOrder(graph_)) schedule.steps.push_back(Step::Run(op));
    return schedule;
  }
  Timeline TimelineOf(const Schedule& schedule) const override {
    return BuildRunTimeline(graph_, RunsOf(schedule));
  }
  std::vector<MemoryKind> KindsOf(const Schedule& schedule,
                                  const Timeline& timeline) const override {
    IdVector<NodeId, bool> has_run(graph_.ops().size());
    std::vector<bool> is_first;  // For each step, whether its operation runs for the first time.
    for (const Step& step : schedule.steps) {
      is_first.push_back(!has_run[step.node()]);
      has_run[step.node()] = true;
    }
    std::vector<MemoryKind> kinds;
    kinds.reserve(timeline.versions.size());
    for (const Version& version : timeline.versions) {
      kinds.push_back(KindOf(version, is_first[static_cast<size_t>(version.made_at)], schedule));
    }
    return kinds;
  }
  Result<Measured> Measure(const Schedule& schedule) const override {
    CKPLAN_ASSIGN_OR_RETURN(const RunSimulation found, RunSimulator(graph_).Run(RunsOf(schedule)));
    return Measured{found.peak, found.peak_step, found.cost - graph_.cost()};
  }
  Schedule WithoutUnreadRuns(const Schedule& schedule) const override {
    IdVector<NodeId, int32_t> runs_before(graph_.ops().size());
    for (const Step& step : schedule.steps) ++runs_before[step.node()];
    IdVector<TensorId, bool> is_read(graph_.values().size());
    for (const ValueId result : graph_.results()) is_read[result] = true;
    Schedule kept;
    for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
      const std::vector<TensorId>& writes = MakesOf(*step);
      const bool is_first = --runs_before[step->node()] == 0;
      const bool is_wanted =
          std::any_of(writes.begin(), writes.end(), [&](TensorId write) { return is_read[write]; });
      if (!is_first && !is_wanted) continue;
      for (const TensorId write : writes) is_read[write] = false;
      for (const TensorId read : ReadsOf(*step)) is_read[read] = true;
      kept.steps.push_back(*step);
    }
    std::reverse(kept.steps.begin(), kept.steps.end());
    return kept;
  }

 private:
  MemoryKind KindOf(const Version& version, bool is_first, const Schedule& schedule) const {
    if (!is_first) return MemoryKind::kRecomputed;
    if (!has_backward_) return MemoryKind::kKept;
    if (IsBackward(schedule.steps[static_cast<size_t>(version.made_at)])) {
      return MemoryKind::kGradients;
    }
    const auto last = static_cast<size_t>(version.last_read);
    return IsBackward(schedule.steps[last]) ? MemoryKind::kKept : MemoryKind::kPassing;
  }

  const JointGraph& graph_;
  const bool has_backward_;  // Whether the graph says which operations are backward.
};

}  // namespace

std::unique_ptr<PlannedGraph> PlannedGraphOf(const TensorGraph& graph, const ModuleCalls* modules) {
  return std::make_unique<PlannedTensorGraph>(graph, modules);
}

std::unique_ptr<PlannedGraph> PlannedGraphOf(const JointGraph& graph) {
  return std::make_unique<PlannedJointGraph>(graph);
}

std::string DescribeStep(const PlannedGraph& graph, const Step& step, bool has_run) {
  switch (step.kind) {
    case StepKind::kForward:
      return (has_run ? "recomputation of " : "forward of ") + graph.NameOf(step.node());
    case StepKind::kLoss:
      return "the loss";
    case StepKind::kBackward:
      return "backward of " + graph.NameOf(step.node());
    case StepKind::kFree:
      return "the release of " + graph.NameOf(step.tensor());
    case StepKind::kRun:
      return (has_run ? "another run of " : "run of ") + graph.NameOf(step.node());
  }
  return "";
}

}  // namespace ckplan
