// The program over moments: what to keep and what to run again, for a fixed order of first runs.
//
// A moment is the first run of an operation. Between two moments, and behind the last to the end,
// lies an interval; interval j begins with moment j. For a value u, made by m(u), and an operation
// o
//   a^j_u   u is in memory at moment j,
//   r^j_o   o has run before moment j, and runs again in interval j,
//   f^j_o   o runs for the first time in interval j (given by the order).
// It minimises the sum of cost_o r^j_o, where
//   (1) a^j_u + r^j_m(u) >= 1 for each read u of what first runs in interval j and was made before,
//   (2) r^j_o <= a^j_u + r^j_m(u) for each read u of o,
//   (3) a^(j+1)_u <= a^j_u + r^j_m(u) + f^j_m(u); for results also behind the last interval,
//   (4) the values in memory at moment j leave room for what its operation writes and works in,
//   (5) for chosen pairs of an operation and an interval: if it runs again there, the values that
//       are in memory throughout the interval leave room for what it reads, writes and works in.
//       Those are what moment j+1 finds, or the end, unless interval j makes it again.
// What happens before the first moment, repeats within one interval, and memory at all other times
// are not charged. So the least cost of the program is a lower bound on the overhead of every plan
// that keeps the order and the budget: docs/bounds.md has the proof.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/algorithms/best/solve_program.h"
#include "lib/base/result.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

struct MomentPlan {
  std::vector<std::vector<bool>> kept;  // For each moment: a^j, by value.
};

// "Every plan" of an outcome is every plan in this order.
using MomentOutcome = ProgramOutcome<MomentPlan>;

// A pair of (5).
struct ChargedRerun {
  int32_t moment = 0;  // The one that the interval begins with: its position in the order.
  OpId op;

  auto operator<=>(const ChargedRerun&) const = default;
};

// When memory is charged.
struct ChargedSteps {
  std::vector<int32_t> moments;      // Positions in the order, ascending.
  std::vector<ChargedRerun> reruns;  // At some of the moments.
};

// `order` has every operation once, each behind the makers of what it reads. kUnsupported: built
// without a MIP solver, or too large for it.
Result<MomentOutcome> SolveMoments(const RunProblem& problem, std::span<const OpId> order,
                                   const ChargedSteps& charged, int64_t budget,
                                   const ProgramLimits<MomentPlan>& limits);

// The runs of such a plan: within an interval what is missing is run again just before it is read,
// and at the end of the interval what the next moment wants.
Runs ExpandMoments(const RunProblem& problem, std::span<const OpId> order,
                   std::span<const int32_t> moments, const MomentPlan& plan);

}  // namespace ckplan
