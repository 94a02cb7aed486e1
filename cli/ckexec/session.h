// What the commands of ckexec work on: a model and perhaps its plan, ready on a backend.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/ckexec/options.h"
#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/constant_store.h"
#include "lib/exec/step_operators.h"
#include "lib/model/model.h"
#include "lib/model/step_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct ModelAndPlan {
  Model model;
  ModelGraph lowered;        // By the plan's costs; of the model alone where there is no plan.
  std::optional<Plan> plan;  // Passed the checker.
};

// kUsage: no plan where one is needed, or one that `backend` cannot run, or not with these options.
// kUnsupported: the backend cannot store what the plan or --bf16 asks for. kCheckFailed: the plan
// is for another model, or does not pass the checker.
enum class PlanNeed { kNone, kOptional, kRequired };
Result<ModelAndPlan> LoadModelAndPlan(const ExecOptions& options, const Backend& backend,
                                      PlanNeed need);

// A model ready to run: its step, its operators, and its constants in the memory of the backend.
// Behind pointers, since each refers to those before it.
struct StepOnBackend {
  std::unique_ptr<const StepGraph> graph;
  std::unique_ptr<const StepOperators> operators;
  std::unique_ptr<ConstantStore> constants;

  // kUnsupported: types or operators that the backend cannot run, all of them named.
  static Result<StepOnBackend> Create(Backend& backend, const ModelAndPlan& planned,
                                      const ExecOptions& options);
};

// WriteFiles of one file, during which Ctrl-C has no effect.
Result<Done> WriteUninterrupted(const std::string& path, std::string_view text);

// The options' texts as numbers, or their defaults.
Result<uint64_t> SeedOf(const ExecOptions& options);
Result<int> CountOf(const std::optional<std::string>& text, std::string_view flag, int otherwise,
                    int least);

}  // namespace ckplan
