// The program over moments: it chooses which values to keep and which operations to run again, for
// a fixed order of first runs.
//
// A moment is the first run of an operation. An interval lies between two moments, or after the
// last one; interval j begins with moment j. For a value u, made by m(u), and an operation o, let
//   a^j_u   u is in memory at moment j,
//   r^j_o   o has run before moment j, and runs again in interval j,
//   f^j_o   o runs for the first time in interval j (given by the order).
// It minimises the sum of cost_o r^j_o, where
//   (1) a^j_u + r^j_m(u) >= 1 for each u made before that a first run in interval j reads,
//   (2) r^j_o <= a^j_u + r^j_m(u) for each read u of o,
//   (3) a^(j+1)_u <= a^j_u + r^j_m(u) + f^j_m(u); for results also after the last interval,
//   (4) the values in memory at moment j leave room for its operation's writes and workspace,
//   (5) for chosen pairs of an operation and an interval: if it runs again there, the values
//       in memory throughout the interval leave room for its reads, writes and workspace.
//       These values are in memory at moment j+1, or the end, and not remade in interval j.
// With a link to the host, values that may move can also come back from there; moment_copies.h has
// the columns and rows for that, and (5) is about the values that may not move.
// Runs before the first moment, repeats within one interval, and memory at all other times are not
// charged. So the least cost of the program is a lower bound of the overhead of every plan that
// keeps the order and the budget: docs/bounds.md has the proof.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/copy_times.h"
#include "lib/planning/algorithms/best/moment_copies.h"
#include "lib/planning/algorithms/best/solve_program.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct MomentPlan {
  std::vector<std::vector<bool>> kept;    // For each moment: a^j, by value.
  std::vector<std::vector<bool>> loaded;  // For each moment: l^j, by value. Empty without a link.
  // Windows that copies must fit into, that are not in the program and that the plan exceeds.
  std::vector<ChargedWindow> exceeded;
};

// "Every plan" in ProgramOutcome means every plan in this order.
using MomentOutcome = ProgramOutcome<MomentPlan>;

// A pair of constraint (5).
struct ChargedRerun {
  int32_t moment = 0;  // The moment that begins the interval, as a position in the order.
  OpId op;

  auto operator<=>(const ChargedRerun&) const = default;
};

// The steps whose memory is constrained, and the windows of copies.
struct ChargedSteps {
  std::vector<int32_t> moments;             // Positions in the order, ascending.
  std::vector<ChargedRerun> reruns;         // Each belongs to one of the moments.
  std::vector<ChargedWindow> windows = {};  // Each belongs to one of the moments.
};

// `order` has every operation once, each after the makers of its reads. If `times` is given, plans
// may copy values to the host and back. kUnsupported: built without a MIP solver, or too large for
// it.
Result<MomentOutcome> SolveMoments(const RunProblem& problem, std::span<const OpId> order,
                                   const ChargedSteps& charged, int64_t budget,
                                   const ProgramLimits<MomentPlan>& limits,
                                   const CopyTimes* times = nullptr);

// Returns the runs of such a plan. Within an interval, missing values are recomputed just before
// they are read; at its end, those that the next moment needs are.
Runs ExpandMoments(const RunProblem& problem, std::span<const OpId> order,
                   std::span<const int32_t> moments, const MomentPlan& plan);

}  // namespace ckplan
