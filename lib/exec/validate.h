// Proves a plan by running it: the same training step twice from the same weights, batch and output
// gradients, keeping everything and by the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/buffer_memory.h"
#include "lib/exec/constant_store.h"
#include "lib/exec/loss.h"
#include "lib/exec/placed_program.h"
#include "lib/exec/runner.h"
#include "lib/exec/step_graph.h"
#include "lib/exec/step_operators.h"
#include "lib/plan/plan.h"
#include "lib/schedule/arena.h"

namespace ckplan {

struct ValidateOptions {
  uint64_t seed = 0;
  LossKind loss = LossKind::kGiven;
  int timed_runs = 3;  // Of each schedule; 0: no times.
};

// One schedule, as predicted and as measured.
struct RunFigures {
  Bytes predicted_peak;
  MeasuredPeak arena_peak;    // Of what lived in the arena.
  MeasuredPeak counted_peak;  // Of the counting allocator.
  // The same run by the count of the device's driver, where there is one. It rounds what it hands
  // out.
  std::optional<Bytes> driver_peak;
  Bytes arena_bytes;  // Of the slab.
  Bytes arena_used;
  double loss = 0;
  std::optional<double> seconds;            // Of the timed runs, without the loss.
  std::optional<double> recompute_seconds;  // Of that, in forward steps that run again.
};

struct ParameterDifference {
  std::string name;
  int64_t elements = 0;  // That differ.
  double largest = 0;    // Absolute.
};

struct ValidationReport {
  RunFigures keep_all;
  RunFigures plan;
  ConstantUsage constants;
  std::vector<MemoryUse> overheads;  // Of the device: contexts, handles of libraries.
  // Workspaces are in the peaks where the plan knows them; else they lie outside, this large.
  bool has_planned_workspaces = false;
  Bytes unplanned_workspace;
  int64_t parameters = 0;  // Whose gradients were compared.
  std::vector<ParameterDifference> differences;
  std::optional<double> predicted_overhead;  // Share of a training step; and as measured:
  std::optional<double> measured_overhead;
  std::vector<std::string> notes;
  std::vector<std::string> failures;  // Empty: the plan is proven.
};

// `planned` is the graph that the plan was made for (lowered with the plan's costs), before sizes
// were aligned. The plan must have passed CheckPlan. Errors are of the machine or the backend; what
// is wrong with the plan is in `failures`.
Result<ValidationReport> ValidatePlan(Backend& backend, const StepGraph& step,
                                      const StepOperators& operators, ConstantStore& constants,
                                      const TensorGraph& planned, const Plan& plan,
                                      const ValidateOptions& options);

// The part of it that runs: two schedules of one step that are ready to run.
Result<ValidationReport> ValidateRuns(Backend& backend, const StepGraph& step,
                                      ConstantStore& constants, Runner& runner,
                                      const PlacedProgram& keep_all, const PlacedProgram& plan,
                                      const ValidateOptions& options);

}  // namespace ckplan
