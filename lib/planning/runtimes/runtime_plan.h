// Finds the best plan within a budget that another runtime can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/runtimes/region_class.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The training step of a model as a joint graph whose operations name their modules.

// A step of a forward graph is expanded (lib/problem/schedule/expand.h). The operations of nodes
// get the paths of their modules from `modules`, which may be empty; those of the file of a joint
// graph have them already.
JointGraph NamedStep(const TrainingStep& step, const ModuleCalls& modules);

// Returns the graph with the phase `backward` for all operations after the first one of it. Graphs
// of frameworks have operations there that read no gradient, and are said to be of the forward
// pass.
JointGraph WithPasses(const JointGraph& graph);

// Some calls of an operation among all calls of that type in a region, counted from 0.
struct Calls {
  std::string op;
  std::vector<int64_t> calls;
  int64_t count = 0;  // How many calls there are.
};

// What the plan does with a region.
struct PlannedRegion {
  ModuleNames modules;
  int64_t ops = 0;  // Forward operations in it.
  int64_t run_again = 0;
  Cost overhead;
  std::vector<Calls> saved;  // The calls that selective checkpoints and tags save.
};

struct RuntimePlan {
  RuntimeKind kind = RuntimeKind::kCheckpoint;
  Bytes budget;
  Bytes peak;
  Cost overhead;
  bool fits = false;
  bool is_exact = false;  // No plan of the class is better.
  std::vector<PlannedRegion> regions;
  RuntimeSetting setting;  // Filled for kinds with one setting for all layers.
  int64_t layers = 0;      // How many repeated blocks the model has.
};

// The step must name the modules of its operations (Operation::module). kUnsupported: it does not,
// or it has nothing that the runtime can recompute.
Result<RuntimePlan> FindRuntimePlan(const JointGraph& step, RuntimeKind kind, Bytes budget);

}  // namespace ckplan
