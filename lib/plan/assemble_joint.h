// Makes a plan of a sequence of runs of a joint graph: simulates it, places its buffers, and
// gathers the figures. The caller checks the result (check_runs.h) before anyone sees it.
//
// Figures of a joint graph:
//   overhead        cost of all runs beyond one of each operation. Below zero where operations that
//                   no result needs never run.
//   baseline_peak   of the graph's own order, nothing run twice.
//   forward_cost, backward_cost   of the operations of each phase, each run once.
//   constants       see JointConstants.
#pragma once

#include <span>
#include <vector>

#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// `runs` must be a plan of the graph (RunSimulator::Run). The caller adds the parts that only it
// knows: the request, the model's identity, the guarantee and what is proven.
Plan AssembleJointPlan(const JointGraph& graph, std::span<const OpId> runs);

// The values that do not count in the peak, aliases left out. What no operation makes, and other
// constants, count as inputs unless the graph says that they are parameters.
ConstantMemory JointConstants(const JointGraph& graph);

// Bytes of the gradients of parameters, wherever they are counted: what optimizers keep state for.
Bytes ParameterGradientBytes(const JointGraph& graph);

// The overhead of running only what some result needs, each once: no plan of the graph has less. It
// is zero or, where there are operations that nothing needs, below.
Cost LeastOverhead(const JointGraph& graph);

Cost PhaseCost(const JointGraph& graph, Phase phase);

// The runs that the steps of a plan are. They must all be of the kind kRun.
std::vector<OpId> RunsOf(const Schedule& schedule);

}  // namespace ckplan
