// What tests of schedules share: random decisions, and steps as text.
#pragma once

#include <string>

#include "lib/base/rng.h"
#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/strategy.h"

namespace ckplan {

// A random share of the nodes, each with the same chance.
inline KeptSet RandomKeptSet(Rng& rng, const TensorGraph& graph) {
  KeptSet kept;
  const int percent = static_cast<int>(rng.Between(0, 100));
  for (size_t i = 0; i < graph.nodes().size(); ++i) kept.is_kept.push_back(rng.Chance(percent));
  return kept;
}

// "fa fb loss bb ba": f and b before the name of the node that runs forward or backward.
inline std::string StepsOf(const TensorGraph& graph, const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    text += text.empty() ? "" : " ";
    text += step.kind == StepKind::kLoss
                ? "loss"
                : (step.kind == StepKind::kForward ? "f" : "b") + graph.node(step.node()).name;
  }
  return text;
}

}  // namespace ckplan
