// Prepares a model, with its plan if any, on a backend, for ckexec's commands.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/ckexec/options.h"
#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/model.h"
#include "lib/files/model/step_graph.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Remedies for a plan that the backend cannot place.

// Checks that every buffer of `graph`, in the plan's sizes, can start where the previous one ends.
// kUsage: a buffer cannot; the message names it, and the command that makes a suitable plan.
Result<Done> CheckAlignment(const TensorGraph& graph, const Plan& plan, const Backend& backend,
                            const ExecOptions& options);

// Returns the command that makes the same plan with --align.
std::string ReplanCommand(const Plan& plan, int64_t align_bytes, const ExecOptions& options);

struct ModelAndPlan {
  Model model;
  ModelGraph lowered;        // With the plan's costs, otherwise the options' costs.
  std::optional<Plan> plan;  // Checked.
  Autograd autograd = Autograd::kMinimal;
};

// kUsage: a required plan is missing, or `backend` cannot run the plan with these options.
// kUnsupported: the backend cannot store the type that the plan or --bf16 requests. kCheckFailed:
// the plan is for another model, or fails the check.
enum class PlanNeed { kNone, kOptional, kRequired };
Result<ModelAndPlan> LoadModelAndPlan(const ExecOptions& options, const Backend& backend,
                                      PlanNeed need);

// A model that is ready to run: its step, its operators, and its constants in the backend's memory.
// The members are pointers because each refers to earlier ones.
struct StepOnBackend {
  std::unique_ptr<const StepGraph> graph;
  std::unique_ptr<const StepOperators> operators;
  std::unique_ptr<ConstantStore> constants;

  // kUnsupported: the backend cannot run some types or operators; the error names all of them.
  static Result<StepOnBackend> Create(Backend& backend, const ModelAndPlan& planned,
                                      const ExecOptions& options);
};

// Checks, before reading anything, that `output` can be written and is not one of the input files.
// Does nothing without an output.
Result<Done> CheckOutput(const ExecOptions& options, const std::optional<std::string>& output);

// Writes one file like WriteFiles, ignoring Ctrl-C while it writes.
Result<Done> WriteUninterrupted(const std::string& path, std::string_view text);

// Returns the line that suggests how to plan the same model with the measurements: "next: ckplan
// m.onnx -D N=8 --cost file:costs.json -o plan.json". `measured` has the flags for them.
std::string PlanningStep(const ExecOptions& options, std::string_view measured);

// Parse a numeric option, or return its default.
Result<uint64_t> SeedOf(const ExecOptions& options);
Result<int> CountOf(const std::optional<std::string>& text, std::string_view flag, int otherwise,
                    int min_count);

}  // namespace ckplan
