// The memory of a training step over the steps of its schedule, as data and as a picture.
//
//   simulated   what the simulator counts, by kind (schedule/memory_curve.h); the peak is the
//   plan's predicted   Eq. 9 and 10 of Hong et al. 2024, where a training phase ends; only for
//   plans that
//               are checkpoints on the chain (hong/step_prediction.h)
//
// CSV has a row for each step:
//
//   step, phase       "forward", "loss", "recompute", "backward" or "free"; of a joint graph, whose
//                     operations run for the first time by their own phase, and else "recompute"
//   node              the one that runs, or whose result is released; empty for the loss
//   kept_bytes, passing_bytes, recomputed_bytes, gradients_bytes, workspace_bytes
//   memory_bytes      their sum; the largest is the plan's peak
//   after_bytes       what is left when the step is over
//   constant_bytes    parameters, their gradients, optimizer state and inputs: in no other column
//   predicted_bytes   to be compared with after_bytes in forward, and with memory_bytes in backward
//
// Of a joint graph's plan, what first runs made counts as kept, and what later runs made as
// recomputed; gradients are values like others.
//
// Of two plans the rows of the older come first, and a column in front says "old" or "new".
//
// SVG stacks the kinds of one plan, and draws one line for each of two. It needs no script, font or
// network, has colours for light and for dark screens, and a few hundred columns, however many the
// steps are: each column shows the step in it that needs the most.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"
#include "lib/schedule/memory_curve.h"

namespace ckplan {

struct MemoryCurve {
  const Plan* plan = nullptr;
  std::vector<StepMemory> steps;
  std::vector<std::string_view> phases;  // One for each step.
  std::vector<std::string> nodes;        // One for each step; empty for the loss.
  std::optional<size_t> loss_step;       // A joint graph does not say which operation it is.
  size_t peak_step = 0;
  std::vector<std::optional<Bytes>> predicted;  // One for each step; all empty without prediction.
  std::string no_prediction;                    // Why there is none; else empty.
};

// The plan must have passed the checker. Refers to it. O(buffers + nodes + edges).
MemoryCurve TraceCurve(const TensorGraph& graph, const Plan& plan);
MemoryCurve TraceCurve(const JointGraph& graph, const Plan& plan);

// One curve, or two: the older first.
std::string WriteCurveCsv(std::span<const MemoryCurve> curves);
std::string WriteCurveSvg(std::span<const MemoryCurve> curves);

}  // namespace ckplan
