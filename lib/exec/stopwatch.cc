#include "lib/exec/stopwatch.h"

#include <algorithm>
#include <utility>

namespace ckplan {

namespace {

bool Computes(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kBackward ||
         kind == ActionKind::kAdd || kind == ActionKind::kCopy;
}

}  // namespace

Result<Done> Stopwatch::Before(const Action& action, const RunState&) {
  if (!Computes(action.kind)) return Done{};
  backend_.Synchronize();
  began_ = Clock::now();
  return Done{};
}

Result<Done> Stopwatch::After(const Action& action, const RunState& state) {
  if (!Computes(action.kind)) return Done{};
  backend_.Synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  if (action.kind != ActionKind::kForward && action.kind != ActionKind::kBackward) {
    if (!last_backward_.is_none()) nodes_[last_backward_].backward += seconds;
    return Done{};
  }
  const Call& call = state.program.calls[static_cast<size_t>(action.call)];
  NodeSeconds& node = nodes_[call.node];
  if (action.kind == ActionKind::kBackward) {
    node.backward += seconds;
    last_backward_ = call.node;
  } else {
    (call.is_recomputation ? node.recompute : node.forward) += seconds;
  }
  return Done{};
}

double Stopwatch::total() const {
  double sum = 0;
  for (const NodeSeconds& node : nodes_) sum += node.forward + node.recompute + node.backward;
  return sum;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  return values[middle];
}

StepSeconds TypicalSeconds(const std::vector<Stopwatch>& runs) {
  StepSeconds step;
  if (runs.empty()) return step;
  const auto typical = [&runs](NodeId id, double NodeSeconds::*part) {
    std::vector<double> seconds;
    for (const Stopwatch& run : runs) seconds.push_back(run.nodes()[id].*part);
    return Median(std::move(seconds));
  };
  for (const NodeId id : runs.front().nodes().ids()) {
    const double recompute = typical(id, &NodeSeconds::recompute);
    step.recompute += recompute;
    step.total +=
        typical(id, &NodeSeconds::forward) + recompute + typical(id, &NodeSeconds::backward);
  }
  return step;
}

}  // namespace ckplan
