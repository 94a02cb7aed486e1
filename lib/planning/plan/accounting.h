// What training needs of a device, line by line: the one answer to "does it fit?" that all commands
// give.
//
//   tensors   parameters, buffers, inputs, optimizer state, and the step: activations with
//             gradients, or gradients with what the optimizer's step makes, whichever is more.
//             Unless the request says otherwise, a gradient of a parameter is there from the
//             backward operation that makes it on
//   outside   workspaces, the allocator's rounding and fragmentation, cuBLAS, context, driver; or
//             the reserve that replaces them
//   need      tensors + outside
//
// Each line says how far it can be trusted and where it comes from. docs/accounting.md describes
// the lines, and which flag limits which sum.
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

// A training step, with what a request says of its optimizer and of the device's memory.
struct AccountedStep {
  TrainingStep step;
  const PlanRequest& request;
  Bytes buffers;  // The part of the parameters that is not trained and belongs to no parameter.
  bool seeks_least = true;  // Whether the least memory is sought if the request's is too small.
};

// Accounts for a schedule of the step. `peak` is its peak as plans state it. If the request has a
// memory, the allocator gives free segments back where memory ends; without one it never does. If
// the memory is too small, the need is the least larger one that is enough, or nearly so for
// schedules of more than some 10,000 buffers. O(buffers of the schedule * log) for a memory that is
// enough, and otherwise some hundred times that, up to a few tenths of a second.
Accounting AccountFor(const AccountedStep& of, const Schedule& schedule, Bytes peak);

// Returns the least memory that is found to be enough for a schedule, as programs get it.
Bytes MinMemoryFor(const AccountedStep& of, const Schedule& schedule, Bytes peak);

// Returns whether the schedule's need is within the request's memory, without seeking the least.
bool FitsMemory(AccountedStep of, const Schedule& schedule, Bytes peak);

// Returns the bytes of the constant gradients that the need has only from when they are computed.
// 0 if the request counts them otherwise, if micro-batches or devices share the step, or if the
// graph does not say which operation makes which gradient. O(graph).
Bytes ArrivingGradients(const TrainingStep& step, const PlanRequest& request);

// Returns what a memory that is not enough for this must hold at the least, whatever the plan: the
// constants, gradients with the optimizer's temporaries, and what is outside of tensors.
Bytes LeastNeed(const TrainingStep& step, const PlanRequest& request);

}  // namespace ckplan
