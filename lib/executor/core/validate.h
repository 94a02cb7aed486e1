// Proves a plan by running it. One training step runs four times from the same weights, batch and
// output gradients: keeping everything and following the plan, each in an arena and with separate
// buffers. After each of these runs, and after each timed step that follows, the parameter
// gradients must be bitwise equal.
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
  int timed_runs = 3;  // For each schedule; 0 measures no times.
  // Times whole steps as recorded work, if the backend records. `keep_all.seconds` and
  // `plan.seconds` are then those of recorded steps.
  bool records_steps = false;
};

// Predicted and measured figures of one schedule.
struct RunFigures {
  Bytes predicted_peak;
  MeasuredPeak arena_peak;    // The peak of the arena's buffers.
  MeasuredPeak counted_peak;  // The peak of the counting allocator's buffers.
  // The driver's own peak during the counting allocator's run, if it counts. The driver rounds
  // allocation sizes up.
  std::optional<Bytes> driver_peak;
  Bytes arena_bytes;  // The size of the arena.
  Bytes arena_used;
  // Copies on the host, in a block of `host_bytes` and in separate allocations.
  Bytes predicted_host_peak;
  Bytes host_peak;
  Bytes counted_host_peak;
  Bytes host_bytes;
  double loss = 0;
  std::optional<double> seconds;  // Time of a typical run, without the loss: see StepTiming.
  // Sums of each operator's median time in this program: of all operators, and of recomputed ones.
  std::optional<double> operator_seconds;
  std::optional<double> recompute_seconds;
  std::optional<double> predicted_seconds;  // Only if the plan's costs were measured.
};

// What RunFigures::seconds times. Operators run fused in all of these.
enum class StepTiming {
  kOperators,  // The sum of the operators' medians, on a device that runs them one by one.
  kSteps,      // Undisturbed steps.
  kRecorded,   // Undisturbed steps as recorded work.
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
  // True if the peaks include the workspaces, because the plan knows them. Otherwise they lie
  // outside the arena and take `unplanned_workspace` bytes.
  bool has_planned_workspaces = false;
  Bytes unplanned_workspace;
  int64_t parameters = 0;                        // The number of parameter gradients compared.
  std::vector<ParameterDifference> differences;  // For the first run that differs.
  std::optional<StepTiming> timing;              // Absent if no step was timed.
  // Fractions of a training step's time.
  std::optional<double> predicted_overhead;
  std::optional<double> measured_overhead;
  std::vector<std::string> notes;
  std::vector<Error> failures;  // Empty if the plan is proven.
};

// `planned` is the graph that the plan was made for (lowered with the plan's costs), before sizes
// were aligned. The plan must have passed CheckPlan. Returns an error only if the machine or the
// backend fails; faults of the plan go to `failures`.
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
