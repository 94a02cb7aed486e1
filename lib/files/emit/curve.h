// Writes the memory of a training step over time as CSV or SVG.
//
//   simulated   ckplan's own figures, by kind (schedule/timeline.h); the maximum is the plan's peak
//   predicted   a paper's figures, for plans by the paper's algorithms
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
//   predicted_bytes   compares with after_bytes in forward, and with memory_bytes in backward
//
// In a joint graph's plan, the outputs of backward operations' first runs count as gradients.
//
// With two plans, the rows of the older one come first, and an extra first column says "old" or
// "new".
//
// The SVG stacks the kinds of a single plan, or draws a line for each of two plans. It needs no
// script, font or network, and has colours for light and dark screens. It groups the steps into at
// most a few hundred columns; each shows its highest step.
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

// A paper's prediction of the memory.
struct StepPredictor {
  std::string_view name;  // "Eq. 9 and 10 of Hong et al."
  // Returns one entry per step of the schedule. An error says why the plan has no prediction.
  Result<std::vector<std::optional<Bytes>>> (*predict)(const TensorGraph& graph,
                                                       const Plan& plan) = nullptr;
  std::string_view why_not_joint;  // Why a joint graph's plan has no prediction.
  // The prefix of the paper's algorithm names. Other algorithms' plans have no prediction.
  std::string_view algorithms;
};

struct MemoryCurve {
  const Plan* plan = nullptr;
  std::string_view predictor;  // The name of the StepPredictor.
  std::vector<StepMemory> steps;
  std::vector<std::string_view> phases;  // The phase of each step.
  std::vector<std::string> nodes;        // The node of each step; empty for the loss.
  std::optional<size_t> loss_step;       // Empty for a joint graph, whose loss is not marked.
  size_t peak_step = 0;
  // One entry per step; all are empty without a prediction.
  std::vector<std::optional<Bytes>> predicted;
  std::string no_prediction;  // Why a plan by the paper's algorithms has no prediction, or "".

  bool has_prediction() const {
    return std::any_of(predicted.begin(), predicted.end(), [](const auto& one) { return one; });
  }
};

// `plan` must have passed the checker and outlive the curve. O(buffers + nodes + edges).
MemoryCurve TraceCurve(const TrainingStep& step, const Plan& plan, const StepPredictor& predictor);

// `curves` has one curve, or two with the older one first.
std::string WriteCurveCsv(std::span<const MemoryCurve> curves);
std::string WriteCurveSvg(std::span<const MemoryCurve> curves);

}  // namespace ckplan
