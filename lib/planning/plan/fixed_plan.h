// A solver without a knob. Preparing it already finds its only plan.
#pragma once

#include <memory>
#include <utility>

#include "lib/planning/plan/solver.h"

namespace ckplan {

class FixedPlanSolver : public PreparedSolver {
 public:
  explicit FixedPlanSolver(SolveOutcome outcome) : outcome_(std::move(outcome)) {}
  Knob knob() const override { return {}; }
  Result<SolveOutcome> Solve(int64_t, const SolveLimits&) override { return outcome_; }

 private:
  SolveOutcome outcome_;
};

}  // namespace ckplan
