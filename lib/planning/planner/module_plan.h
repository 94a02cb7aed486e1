// Finds which modules to wrap in torch.utils.checkpoint to come near a plan.
//
// A plan decides for every operation, but torch.utils.checkpoint takes whole modules. So this
// search keeps the plan's budget, and looks for the modules that meet it in the least time. It
// lowers (lib/problem/schedule/lower.h) and simulates each choice. It starts from no
// module, from all modules of one class, and from those that the plan mostly recomputes. Then it
// adds, removes, merges and splits modules, or exchanges two, as long as the choice improves: first
// by what exceeds the budget, in percent, then by time, by the peak, and by the number of modules.
// It is a heuristic: no choice is proven to be the best.
//
// Cost: as many simulations of the whole step as kModuleSearchSteps allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// A search ends after this many simulated steps: about two seconds.
inline constexpr int64_t kModuleSearchSteps = 20'000'000;

struct WrappedModule {
  std::string path;        // "layer1.0"; empty for the whole model.
  std::string class_name;  // The class of its first call.
  int64_t call_count = 0;
  int64_t node_count = 0;  // In all its calls.
  Bytes recomputed;        // The results of its second runs.
  Cost overhead;           // The cost of its second runs.
};

struct ModulePlan {
  std::vector<WrappedModule> modules;  // In the order of their first calls.
  Bytes budget;  // The plan's budget, or its peak if it has none or if the peak is higher.
  Bytes peak;
  Cost overhead;

  bool fits() const { return peak <= budget; }
};

// `plan` must be one for the step's forward graph; if the step is a joint graph, it is the plan's
// model form (model_form.h). Choices are measured on the step. kUnsupported: the model names no
// modules.
Result<ModulePlan> FindModulePlan(const TrainingStep& step, const ModuleCalls& modules,
                                  const Plan& plan);

}  // namespace ckplan
