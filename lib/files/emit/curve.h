// The memory of a training step over the steps of its schedule, as data and as a picture.
//
//   simulated   the simulator's figures, by kind (schedule/timeline.h); the maximum is the
//               plan's peak
//   predicted   a paper's figures, for the plans that the paper is about
//
// The CSV has a row for each step:
//
//   step, phase       "forward", "loss", "recompute", "backward" or "free"; in a joint graph, first
//                     runs have the phase of their operation, and later runs are "recompute"
//   node              the node that runs, or whose result is freed; empty for the loss
//   kept_bytes, passing_bytes, recomputed_bytes, gradients_bytes, workspace_bytes
//   memory_bytes      their sum; the largest is the plan's peak
//   after_bytes       the memory in use after the step
//   constant_bytes    parameters, their gradients, optimizer state and inputs; in no other column
//   predicted_bytes   to be compared with after_bytes in forward, and with memory_bytes in backward
//
// In a joint graph's plan, what backward operations make in their first runs counts as gradients.
//
// With two plans, the rows of the older one come first, and an extra first column says "old" or
// "new".
//
// The SVG stacks the kinds of a single plan, or draws one line for each of two plans. It needs no
// script, font or network, and has colours for light and dark screens. It has at most a few hundred
// columns; each shows the step in it that needs the most memory.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// What a paper predicts the memory to be.
struct StepPredictor {
  std::string_view name;  // "Eq. 9 and 10 of Hong et al."
  // Has one entry for each step of the schedule. An error says why the plan has no prediction.
  Result<std::vector<std::optional<Bytes>>> (*predict)(const TensorGraph& graph,
                                                       const Plan& plan) = nullptr;
  std::string_view why_not_joint;  // Why a joint graph's plan has no prediction.
  // How the names of the paper's algorithms begin. The plans of others have no prediction.
  std::string_view algorithms;
};

struct MemoryCurve {
  const Plan* plan = nullptr;
  std::string_view predictor;  // Its name.
  std::vector<StepMemory> steps;
  std::vector<std::string_view> phases;  // The phase of each step.
  std::vector<std::string> nodes;        // The node of each step; empty for the loss.
  std::optional<size_t> loss_step;       // Not set for a joint graph, which does not say which
                                         // operation is the loss.
  size_t peak_step = 0;
  // One for each step; all are empty without a prediction.
  std::vector<std::optional<Bytes>> predicted;
  std::string no_prediction;  // Why a plan of the paper's algorithms has none, else empty.

  bool has_prediction() const {
    return std::any_of(predicted.begin(), predicted.end(), [](const auto& one) { return one; });
  }
};

// The plan must have passed the checker. The curve keeps a reference to it. O(buffers + nodes +
// edges).
MemoryCurve TraceCurve(const TrainingStep& step, const Plan& plan, const StepPredictor& predictor);

// `curves` has one curve, or two with the older one first.
std::string WriteCurveCsv(std::span<const MemoryCurve> curves);
std::string WriteCurveSvg(std::span<const MemoryCurve> curves);

}  // namespace ckplan
