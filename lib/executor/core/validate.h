// Proves a plan by running it. One training step is run four times from the same weights, batch and
// output gradients: keeping everything and by the plan, each in an arena and with separate buffers.
// After each of the four runs, and after each timed step that follows them, the gradients of the
// parameters must be equal, bit for bit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/buffer_memory.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/loss.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/runner.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"
#include "lib/problem/schedule/arena.h"

namespace ckplan {

struct Plan;

struct ValidateOptions {
  uint64_t seed = 0;
  LossKind loss = LossKind::kGiven;
  int timed_runs = 3;  // For each of the two schedules; 0 measures no times.
  // Whether whole steps are timed as recorded work, where the backend records it.
  // `keep_all.seconds` and `plan.seconds` are then those of recorded steps.
  bool records_steps = false;
};

// Predicted and measured figures of one schedule.
struct RunFigures {
  Bytes predicted_peak;
  MeasuredPeak arena_peak;    // The buffers that lived in the arena.
  MeasuredPeak counted_peak;  // The buffers that the counting allocator handed out.
  // The peak that the device's driver counted during the counting allocator's run, if the driver
  // counts. The driver rounds sizes of allocations up.
  std::optional<Bytes> driver_peak;
  Bytes arena_bytes;  // The size of the arena.
  Bytes arena_used;
  // Copies on the host, in a block of `host_bytes` and in separate allocations.
  Bytes predicted_host_peak;
  Bytes host_peak;
  Bytes counted_host_peak;
  Bytes host_bytes;
  double loss = 0;
  std::optional<double> seconds;            // Time of a typical run, without the loss.
  std::optional<double> recompute_seconds;  // The part spent in forward steps that run again.
};

struct ParameterDifference {
  std::string name;
  int64_t elements = 0;  // Number of elements whose bits differ.
  double largest = 0;    // The maximum absolute difference.
};

struct ValidationReport {
  RunFigures keep_all;
  RunFigures plan;
  ConstantUsage constants;
  std::vector<MemoryUse> overheads;  // From Backend::Overheads.
  // If the plan knows the workspaces, they are part of the peaks. If not, they lie outside the
  // arena and take `unplanned_workspace` bytes.
  bool has_planned_workspaces = false;
  Bytes unplanned_workspace;
  int64_t parameters = 0;                        // How many gradients of parameters were compared.
  std::vector<ParameterDifference> differences;  // For the first run that differs.
  // predicted_overhead and measured_overhead are fractions of a training step's time.
  std::optional<double> predicted_overhead;
  std::optional<double> measured_overhead;
  std::vector<std::string> notes;
  std::vector<Error> failures;  // Empty if the plan is proven.
};

// `planned` is the graph that the plan was made for (lowered with the plan's costs), before sizes
// were aligned. The plan must have passed CheckPlan. Returns an error only if the machine or the
// backend fails; `failures` holds faults of the plan.
Result<ValidationReport> ValidatePlan(Backend& backend, const StepGraph& step,
                                      const StepOperators& operators, ConstantStore& constants,
                                      const TensorGraph& planned, const Plan& plan,
                                      const ValidateOptions& options);

// Runs the two schedules for ValidatePlan.
Result<ValidationReport> ValidateRuns(Backend& backend, const StepGraph& step,
                                      ConstantStore& constants, Runner& runner,
                                      const PlacedProgram& keep_all, const PlacedProgram& plan,
                                      const ValidateOptions& options);

}  // namespace ckplan
