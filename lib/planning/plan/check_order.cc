#include "lib/planning/plan/check_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ckplan {

OrderCheck::OrderCheck(const TensorGraph& graph, const Schedule& schedule, bool is_free)
    : graph_(graph),
      must_mirror_(!is_free || IsReverse(schedule)),
      has_run_(graph.nodes().size()),
      has_run_backward_(graph.nodes().size()) {
  if (!must_mirror_) CountContributors();
}

// True if the backward steps are exactly the reverse of the first forward runs and all of those
// come before the loss.
bool OrderCheck::IsReverse(const Schedule& schedule) const {
  std::vector<int32_t> forward;
  std::vector<int32_t> backward;
  std::set<int32_t> seen;
  bool has_loss = false;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kLoss) has_loss = true;
    if (step.kind == StepKind::kBackward) backward.push_back(step.index);
    if (step.kind != StepKind::kForward || !seen.insert(step.index).second) continue;
    if (has_loss) return false;
    forward.push_back(step.index);
  }
  std::reverse(backward.begin(), backward.end());
  return forward == backward;
}

// True if the node's backward receives a gradient, considering all later nodes.
bool OrderCheck::Receives(NodeId id) const {
  const std::vector<TensorId>& results = graph_.outputs();
  const std::vector<TensorId>& outputs = graph_.node(id).outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) {
    if (contributors_.count(t) != 0) return true;
    return graph_.tensor(t).requires_grad && std::count(results.begin(), results.end(), t) > 0;
  });
}

// The graph's order puts readers after the producers of what they read.
void OrderCheck::CountContributors() {
  for (size_t n = graph_.nodes().size(); n-- > 0;) {
    if (!Receives(NodeId(n))) continue;
    const std::vector<TensorId>& inputs = graph_.node(NodeId(n)).inputs;
    for (const TensorId t : std::set<TensorId>(inputs.begin(), inputs.end())) {
      if (graph_.tensor(t).requires_grad) ++contributors_[t];
    }
  }
  missing_ = contributors_;
}

std::optional<std::string> OrderCheck::Forward(NodeId id) {
  if (has_run_[id]) return std::nullopt;
  has_run_[id] = true;
  if (!has_loss_) {
    forward_.push_back(id);
  } else if (must_mirror_) {
    return fmt::format("\"{}\" runs for the first time after the loss", graph_.node(id).name);
  }
  return std::nullopt;
}

std::optional<std::string> OrderCheck::Loss() {
  if (has_loss_) return "a second loss";
  has_loss_ = true;
  if (must_mirror_ && forward_.size() != graph_.nodes().size()) {
    return "not every node has run forward";
  }
  return std::nullopt;
}

std::optional<std::string> OrderCheck::Backward(NodeId id) {
  const std::string& name = graph_.node(id).name;
  if (!has_loss_) return "a backward step before the loss";
  if (has_run_backward_[id]) return fmt::format("\"{}\" runs backward twice", name);
  if (must_mirror_ && forward_[forward_.size() - 1 - backward_count_] != id) {
    return fmt::format("\"{}\" runs backward out of the reverse forward order", name);
  }
  if (!has_run_[id]) return fmt::format("\"{}\" runs backward before it has run forward", name);
  has_run_backward_[id] = true;
  ++backward_count_;
  return must_mirror_ ? std::nullopt : AddContributions(id);
}

// Checks that the outputs' gradients are complete, then adds to the inputs' gradients.
std::optional<std::string> OrderCheck::AddContributions(NodeId id) {
  const Node& node = graph_.node(id);
  if (!Receives(id)) return std::nullopt;
  for (const TensorId t : node.outputs) {
    if (missing_.count(t) == 0 || missing_.at(t) == 0) continue;
    return fmt::format("\"{}\" runs backward before the gradient of \"{}\" is complete", node.name,
                       graph_.tensor(t).name);
  }
  for (const TensorId t : std::set<TensorId>(node.inputs.begin(), node.inputs.end())) {
    if (!graph_.tensor(t).requires_grad) continue;
    if (last_.count(t) != 0 && last_.at(t) < id) {
      return fmt::format(
          "\"{}\" adds to the gradient of \"{}\" in a different order from the model", node.name,
          graph_.tensor(t).name);
    }
    last_[t] = id;
    --missing_.at(t);
  }
  for (const int32_t parameter : node.shared_parameters) {
    if (last_trainer_.count(parameter) != 0 && last_trainer_.at(parameter) < id) {
      return fmt::format(
          "\"{}\" adds to the gradient of a parameter in a different order from the model",
          node.name);
    }
    last_trainer_[parameter] = id;
  }
  return std::nullopt;
}

std::optional<std::string> OrderCheck::End() const {
  const size_t nodes = graph_.nodes().size();
  if (backward_count_ == nodes) return std::nullopt;
  return fmt::format("{} of {} nodes ran backward", backward_count_, nodes);
}

}  // namespace ckplan
