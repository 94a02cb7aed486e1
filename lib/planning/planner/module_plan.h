// Finds the modules to wrap in torch.utils.checkpoint to approximate a plan.
//
// A plan decides for every operation, but torch.utils.checkpoint takes whole modules. So this
// search looks for the modules that fit the plan's budget in the least time. It lowers
// (lib/problem/schedule/lower.h) and simulates each choice. It starts with no module, all modules
// of one class, and the modules that the plan mostly recomputes. Then it adds, removes, merges,
// splits or swaps modules as long as that improves the choice: first the excess over the budget in
// percent, then time, peak, and number of modules. It is a heuristic without a proof.
//
// Cost: one simulation of the whole step per choice, limited by kModuleSearchSteps.
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

// The search ends after simulating this many actions, in about two seconds.
inline constexpr int64_t kModuleSearchSteps = 20'000'000;

struct WrappedModule {
  std::string path;        // "layer1.0"; empty for the whole model.
  std::string class_name;  // The class of its first call.
  int64_t call_count = 0;
  int64_t node_count = 0;  // In all its calls.
  Bytes recomputed;        // Results of repeated runs.
  Cost overhead;           // Cost of repeated runs.
};

struct ModulePlan {
  std::vector<WrappedModule> modules;  // In the order of their first calls.
  Bytes budget;  // The plan's budget or, if higher or without a budget, its peak.
  Bytes peak;
  Cost overhead;

  bool fits() const { return peak <= budget; }
};

// `plan` must be a plan of the step's forward graph; for a joint graph, its model form
// (model_form.h). Choices are simulated on the step. kUnsupported: the model records no modules.
Result<ModulePlan> FindModulePlan(const TrainingStep& step, const ModuleCalls& modules,
                                  const Plan& plan);

}  // namespace ckplan
