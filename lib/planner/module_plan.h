// Which modules to wrap in torch.utils.checkpoint to come near a plan.
//
// A plan decides for every operation; torch.utils.checkpoint takes whole modules. So the plan's
// budget is kept, and the modules are sought that keep it in the least time, each choice being
// lowered (lib/schedule/lower_checkpoints.h) and simulated. The search starts from no module, from
// all modules of one class, and from those that the plan mostly recomputes, and adds, removes,
// merges and splits, or exchanges two, while that is better: first less above the budget, in per
// cent, then less time, then a lower peak, then fewer modules. It is a heuristic: no choice is
// proven to be the best.
//
// Cost: simulations of the whole step, as many as kModuleSearchSteps allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/module_calls.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// A search ends after so many simulated steps: about two seconds.
inline constexpr int64_t kModuleSearchSteps = 20'000'000;

struct WrappedModule {
  std::string path;        // "layer1.0"; empty for the whole model.
  std::string class_name;  // Of its first call.
  int64_t call_count = 0;
  int64_t node_count = 0;  // In all its calls.
  Bytes recomputed;        // What it makes in its second runs.
  Cost overhead;           // Of its second runs.
};

struct ModulePlan {
  std::vector<WrappedModule> modules;  // In the order of their first calls.
  Bytes budget;  // The plan's own, or its peak if it has none or if that is higher.
  Bytes peak;
  Cost overhead;

  bool fits() const { return peak <= budget; }
};

// `plan` is one for the step's forward graph: its model form (model_form.h), where the step is a
// joint graph. Plans are measured on the step. kUnsupported: the model names no modules.
Result<ModulePlan> FindModulePlan(const TrainingStep& step, const ModuleCalls& modules,
                                  const Plan& plan);

}  // namespace ckplan
