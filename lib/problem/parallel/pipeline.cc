#include "lib/problem/parallel/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"

namespace ckplan {
namespace {

Cost StepCostOf(const Node& node) { return node.forward_cost + node.backward_cost; }

// Returns the first node of each stage if no stage may cost more than `limit` and each takes as
// many nodes as it can. Returns nothing if that needs more stages. Each stage has at least one
// node.
std::optional<std::vector<NodeId>> FillStages(const TensorGraph& graph, int64_t stages,
                                              Cost limit) {
  std::vector<NodeId> starts;
  Cost filled;
  const auto count = static_cast<int64_t>(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) {
    const Cost cost = StepCostOf(graph.node(id));
    if (cost > limit) return std::nullopt;
    const auto begun = static_cast<int64_t>(starts.size());
    // The nodes left are just enough to give each remaining stage one.
    const bool must_begin = count - id.index() <= stages - begun;
    if (starts.empty() || must_begin || filled + cost > limit) {
      if (begun == stages) return std::nullopt;
      starts.push_back(id);
      filled = Cost(0);
    }
    filled += cost;
  }
  return starts;
}

std::vector<NodeId> BalancedStarts(const TensorGraph& graph, int64_t stages) {
  Cost low;  // A lower bound of the least limit.
  Cost high = graph.forward_cost() + graph.backward_cost();
  while (low < high) {
    const Cost middle(low.count() + (high.count() - low.count()) / 2);
    if (FillStages(graph, stages, middle)) {
      high = middle;
    } else {
      low = middle + Cost(1);
    }
  }
  return *FillStages(graph, stages, high);
}

bool IsPartOf(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

Result<NodeId> FindCut(const TensorGraph& graph, const ModuleCalls& modules,
                       const std::string& cut) {
  for (const NodeId id : graph.nodes().ids()) {
    if (graph.node(id).name == cut) return id;
  }
  for (size_t i = 0; i < modules.call_of.size(); ++i) {
    const int32_t call = modules.call_of[NodeId(i)];
    if (call >= 0 && IsPartOf(modules.call(call).path, cut)) return NodeId(i);
  }
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  for (const ModuleCall& call : modules.calls) names.push_back(call.path);
  const std::string meant = DidYouMean(cut, names);
  return Error{
      ErrorCode::kUsage,
      fmt::format("stages: no node or module is called \"{}\"{}", Printable(cut, 200), meant),
      {},
      {}};
}

Result<std::vector<NodeId>> NamedStarts(const TensorGraph& graph, const ModuleCalls& modules,
                                        int64_t stages, std::span<const std::string> cuts) {
  if (static_cast<int64_t>(cuts.size()) != stages - 1) {
    return MakeError(ErrorCode::kUsage, fmt::format("{} stages have {} cuts between them, not {}",
                                                    stages, stages - 1, cuts.size()));
  }
  std::vector<NodeId> starts = {NodeId(0)};
  for (const std::string& cut : cuts) {
    CKPLAN_ASSIGN_OR_RETURN(const NodeId start, FindCut(graph, modules, cut));
    if (start <= starts.back()) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("stages: \"{}\" is no later in the graph than where the stage before it "
                      "begins, at \"{}\"",
                      Printable(cut, 200), Printable(graph.node(starts.back()).name, 200)));
    }
    starts.push_back(start);
  }
  return starts;
}

class StageCutter {
 public:
  StageCutter(const TensorGraph& graph, const NodeRange& nodes) : graph_(graph), nodes_(nodes) {
    stage_.tensor_of.resize(graph.tensors().size());
    stage_.parts.name = graph.name();
  }

  StageGraph Cut() && {
    MarkTensors();
    for (const TensorId id : graph_.tensors().ids()) {
      if (is_used_[id]) AddTensor(id);
    }
    for (NodeId id = nodes_.begin; id < nodes_.end; ++id) AddNode(graph_.node(id));
    AddOutputs();
    return std::move(stage_);
  }

 private:
  bool IsMadeHere(TensorId id) const {
    const NodeId producer = graph_.tensor(id).producer;
    return !producer.is_none() && nodes_.Has(producer);
  }

  void MarkTensors() {
    is_used_.resize(graph_.tensors().size(), false);
    for (NodeId id = nodes_.begin; id < nodes_.end; ++id) {
      const Node& node = graph_.node(id);
      for (const auto* list : {&node.inputs, &node.outputs}) {
        for (const TensorId tensor : *list) is_used_[tensor] = true;
      }
    }
  }

  void AddTensor(TensorId id) {
    Tensor tensor = graph_.tensor(id);
    if (!IsMadeHere(id)) tensor.kind = TensorKind::kInput;
    stage_.tensor_of[id] = stage_.parts.tensors.push_back(std::move(tensor));
  }

  std::vector<TensorId> Mapped(const std::vector<TensorId>& whole) const {
    std::vector<TensorId> mapped;
    for (const TensorId id : whole) mapped.push_back(stage_.tensor_of[id]);
    return mapped;
  }

  void AddNode(const Node& whole) {
    Node node = whole;
    node.inputs = Mapped(whole.inputs);
    node.outputs = Mapped(whole.outputs);
    node.backward_reads = Mapped(whole.backward_reads);
    node.gradient_passthrough = Mapped(whole.gradient_passthrough);
    node.in_place.clear();
    for (const auto& [output, input] : whole.in_place) {
      // A received tensor stays unchanged until it is read again, so it is never overwritten in
      // place.
      if (!IsMadeHere(input)) continue;
      node.in_place.push_back({stage_.tensor_of[output], stage_.tensor_of[input]});
    }
    stage_.parts.nodes.push_back(std::move(node));
  }

  void AddOutputs() {
    IdVector<TensorId, bool> is_output(graph_.tensors().size(), false);
    for (const TensorId id : graph_.outputs()) is_output[id] = true;
    for (const TensorId id : graph_.tensors().ids()) {
      if (!IsMadeHere(id)) continue;
      const std::vector<NodeId>& consumers = graph_.tensor(id).consumers;
      const bool is_sent = !consumers.empty() && consumers.back() >= nodes_.end;
      if (is_sent || is_output[id]) stage_.parts.outputs.push_back(stage_.tensor_of[id]);
    }
  }

  const TensorGraph& graph_;
  const NodeRange nodes_;
  IdVector<TensorId, bool> is_used_;
  StageGraph stage_;
};

}  // namespace

int64_t MicroBatchesInFlight(const PipelineStage& stage, int64_t micro_batches,
                             PipelineSchedule schedule) {
  if (schedule == PipelineSchedule::kGPipe) return micro_batches;
  return std::min(micro_batches, stage.stages - stage.index);
}

Result<std::vector<NodeId>> StartsOfStages(const TensorGraph& graph, const ModuleCalls& modules,
                                           int64_t stages, std::span<const std::string> cuts) {
  if (graph.nodes().size() < static_cast<size_t>(stages)) {
    return MakeError(ErrorCode::kUsage, fmt::format("\"{}\" has {} nodes, too few for {} stages",
                                                    graph.name(), graph.nodes().size(), stages));
  }
  if (cuts.empty()) return BalancedStarts(graph, stages);
  return NamedStarts(graph, modules, stages, cuts);
}

NodeRange NodesOfStage(std::span<const NodeId> starts, int64_t index, size_t node_count) {
  const auto at = static_cast<size_t>(index);
  return {starts[at], at + 1 < starts.size() ? starts[at + 1] : NodeId(node_count)};
}

StageGraph CutStage(const TensorGraph& graph, const NodeRange& nodes) {
  return StageCutter(graph, nodes).Cut();
}

}  // namespace ckplan
