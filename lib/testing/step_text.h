// A schedule as text, for tests.
#pragma once

#include <string>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// "fa fb loss bb ba": `f` before the name of a node is its forward, `b` its backward.
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
