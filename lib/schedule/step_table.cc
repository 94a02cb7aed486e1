#include "lib/schedule/step_table.h"

namespace ckplan {
namespace {

// Leaves out the graph's inputs, which are always there and are counted with the constants.
std::vector<int32_t> Made(const TensorGraph& graph, const std::vector<TensorId>& tensors) {
  std::vector<int32_t> made;
  for (const TensorId id : tensors) {
    if (!graph.is_input(id)) made.push_back(id.index());
  }
  return made;
}

std::vector<int32_t> PairsOf(const TensorGraph& graph, const Node& node) {
  std::vector<int32_t> pairs;
  for (const auto& [output, input] : node.in_place) {
    if (graph.is_input(input)) continue;
    if (graph.tensor(input).bytes != graph.tensor(output).bytes) continue;
    pairs.push_back(output.index());
    pairs.push_back(input.index());
  }
  return pairs;
}

}  // namespace

StepTable TableOf(const TensorGraph& graph) {
  StepTable table;
  table.has_one_taker = true;
  for (const Node& node : graph.nodes()) {
    table.reads.Append(Made(graph, node.inputs));
    table.writes.Append(Made(graph, node.outputs));
    table.in_place.Append(PairsOf(graph, node));
    table.workspace.push_back(node.forward_workspace);
    table.cost.push_back(node.forward_cost);
  }
  table.reads.Append(Made(graph, graph.outputs()));
  table.workspace.emplace_back();
  for (const Node& node : graph.nodes()) {
    table.reads.Append(Made(graph, node.backward_reads));
    table.workspace.push_back(node.backward_workspace);
  }
  while (table.writes.size() < table.reads.size()) {
    table.writes.Append({});
    table.in_place.Append({});
    table.cost.emplace_back();
  }
  for (const Tensor& tensor : graph.tensors()) table.bytes.push_back(tensor.bytes);
  table.alias_of.assign(graph.tensors().size(), -1);
  table.is_in_memory.assign(graph.tensors().size(), true);
  table.is_result.assign(graph.tensors().size(), false);
  return table;
}

int32_t KindOf(const TensorGraph& graph, const Step& step) {
  const auto nodes = static_cast<int32_t>(graph.nodes().size());
  if (step.kind == StepKind::kForward) return step.index;
  return step.kind == StepKind::kLoss ? nodes : nodes + 1 + step.index;
}

std::vector<int32_t> KindsOf(const TensorGraph& graph, const Schedule& schedule) {
  std::vector<int32_t> kinds;
  kinds.reserve(schedule.steps.size());
  for (const Step& step : schedule.steps) {
    kinds.push_back(step.kind == StepKind::kFree ? FreeOf(step.index) : KindOf(graph, step));
  }
  return kinds;
}

}  // namespace ckplan
