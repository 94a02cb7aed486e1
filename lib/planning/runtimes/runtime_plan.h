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

// Expands the step of a forward graph (lib/problem/schedule/expand.h). Operations of nodes get
// their modules' paths from `modules`, which may be empty; those of a joint graph's file already
// have them.
JointGraph NamedStep(const TrainingStep& step, const ModuleCalls& modules);

// Returns the graph with the phase `backward` for all operations after the first backward one.
// Framework graphs contain operations there that read no gradient and are marked as forward.
JointGraph MarkBackwardPhase(const JointGraph& graph);

// Some calls of an operation, numbered from 0 among the region's calls of that type.
struct Calls {
  std::string op;
  std::vector<int64_t> calls;
  int64_t count = 0;  // The number of all calls.
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
  int64_t layers = 0;      // The number of repeated blocks.
};

// The step must name its operations' modules (Operation::module). Fails with kUnsupported if it
// does not, or if it has nothing that the runtime can recompute.
Result<RuntimePlan> FindRuntimePlan(const JointGraph& step, RuntimeKind kind, Bytes budget);

}  // namespace ckplan
