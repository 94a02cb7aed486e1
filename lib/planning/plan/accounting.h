// What training needs of a device, line by line. All commands use this one answer to "does it
// fit?".
//
//   tensors   parameters, buffers, inputs, optimizer state, and the step: the larger of activations
//             with gradients, and gradients with the optimizer's temporaries. By default, a
//             parameter's gradient takes memory from the backward operation that computes it
//   outside   workspaces, the allocator's rounding and fragmentation, cuBLAS, context, driver; or
//             the reserve that replaces them
//             the reserve that replaces them
//   need      tensors + outside
//
// Each line says how exact it is and where it comes from. docs/accounting.md describes the lines
// and the flag that limits each sum.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/outside.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct Accounting {
  std::vector<MemoryLine> tensors;  // The last line is the step.
  std::vector<MemoryLine> outside;

  Bytes tensor_bytes() const;
  Bytes outside_bytes() const;
  Bytes need() const { return tensor_bytes() + outside_bytes(); }
};

// A training step with the request's optimizer and memory.
struct AccountedStep {
  TrainingStep step;
  const PlanRequest& request;
  Bytes buffers;            // Bytes of constants.parameters that are buffers, not parameters.
  bool seeks_least = true;  // Search for the minimum if the request's memory is too small.
};

// Accounts for a schedule of the step. `peak` is the schedule's peak as plans state it. If the
// request limits memory, the allocator returns free segments when memory runs out; otherwise it
// never does. If the memory is too small, the need is the smallest larger memory that is enough
// (approximately, for schedules of more than about 10,000 buffers). O(buffers of the schedule *
// log) if the memory is enough; otherwise a few hundred times that, up to some tenths of a second.
Accounting AccountFor(const AccountedStep& of, const Schedule& schedule, Bytes peak);

// Returns the smallest memory found to be enough for a schedule, as programs get it.
Bytes MinMemoryFor(const AccountedStep& of, const Schedule& schedule, Bytes peak);

// True if the schedule fits in the request's memory. Does not search for the minimum.
bool FitsMemory(AccountedStep of, const Schedule& schedule, Bytes peak);

// Returns the bytes of constant gradients that count only from the moment they are computed. 0 if
// the request counts them differently, if micro-batches or devices share the step, or if the graph
// does not say which operation computes which gradient. O(graph).
Bytes ArrivingGradients(const TrainingStep& step, const PlanRequest& request);

// Returns a lower bound of the need for every plan that does not fit: the constants, gradients with
// the optimizer's temporaries, and everything outside tensors.
Bytes MinNeed(const TrainingStep& step, const PlanRequest& request);

}  // namespace ckplan
