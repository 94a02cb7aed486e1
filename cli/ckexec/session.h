// Prepares a model, and its plan if there is one, on a backend, for the commands of ckexec.
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

// Checks that every buffer of `graph`, in the plan's sizes, can begin where the previous buffer
// ends. kUsage: one buffer cannot; the message names it, and the command that makes a fitting plan.
Result<Done> CheckAlignment(const TensorGraph& graph, const Plan& plan, const Backend& backend,
                            const ExecOptions& options);

// Returns the command that makes the same plan again, but with --align.
std::string PlanAgainCommand(const Plan& plan, int64_t align_bytes, const ExecOptions& options);

struct ModelAndPlan {
  Model model;
  ModelGraph lowered;        // With the plan's costs, or else those of the options.
  std::optional<Plan> plan;  // It has passed the checker.
  Autograd autograd = Autograd::kMinimal;
};

// kUsage: a plan is required but absent, or `backend` cannot run the plan with these options.
// kUnsupported: the backend cannot store the type that the plan or --bf16 requests. kCheckFailed:
// the plan is for another model, or does not pass the checker.
enum class PlanNeed { kNone, kOptional, kRequired };
Result<ModelAndPlan> LoadModelAndPlan(const ExecOptions& options, const Backend& backend,
                                      PlanNeed need);

// A model ready to run: its step, its operators, and its constants in the memory of the backend.
// The members are pointers, because each refers to the ones before it.
struct StepOnBackend {
  std::unique_ptr<const StepGraph> graph;
  std::unique_ptr<const StepOperators> operators;
  std::unique_ptr<ConstantStore> constants;

  // kUnsupported: types or operators that the backend cannot run; the error names all of them.
  static Result<StepOnBackend> Create(Backend& backend, const ModelAndPlan& planned,
                                      const ExecOptions& options);
};

// Checks, before anything is read, that `output` can be written and is none of the files that the
// command reads. Does nothing if there is no output.
Result<Done> CheckOutput(const ExecOptions& options, const std::optional<std::string>& output);

// Writes one file as WriteFiles does; Ctrl-C has no effect while it writes.
Result<Done> WriteUninterrupted(const std::string& path, std::string_view text);

// Returns the line that says how to plan the model, read as it was, with what was measured: "next:
// ckplan m.onnx -D N=8 --cost file:costs.json -o plan.json". `measured` are the flags for it.
std::string PlanningStep(const ExecOptions& options, std::string_view measured);

// These functions parse an option as a number, or return its default.
Result<uint64_t> SeedOf(const ExecOptions& options);
Result<int> CountOf(const std::optional<std::string>& text, std::string_view flag, int otherwise,
                    int least);

}  // namespace ckplan
