// Remedies for a plan that the backend cannot place.
#pragma once

#include "cli/ckexec/options.h"
#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Checks that every buffer of `graph`, in the plan's sizes, can begin where the previous buffer
// ends. kUsage: one buffer cannot; the message names it, and the command that makes a fitting plan.
Result<Done> CheckAlignment(const TensorGraph& graph, const Plan& plan, const Backend& backend,
                            const ExecOptions& options);

// Returns the command that makes the same plan again, but with --align.
std::string PlanAgainCommand(const Plan& plan, int64_t align_bytes, const ExecOptions& options);

}  // namespace ckplan
