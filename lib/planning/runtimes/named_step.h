// The training step of a model as a joint graph whose operations name their modules.
#pragma once

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/module_calls.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// A step of a forward graph is expanded (lib/problem/schedule/expand.h). The operations of nodes
// get the paths of their modules from `modules`, which may be empty; those of the file of a joint
// graph have them already.
JointGraph NamedStep(const TrainingStep& step, const ModuleCalls& modules);

// Returns the graph with the phase `backward` for all operations after the first one of it. Graphs
// of frameworks have operations there that read no gradient, and are said to be of the forward
// pass.
JointGraph WithPasses(const JointGraph& graph);

}  // namespace ckplan
