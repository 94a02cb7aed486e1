// The program over moments: it chooses which values to keep and which operations to rerun, for a
// fixed order of first runs.
//
// A moment is the first run of an operation. An interval lies between two moments, or after the
// last one; interval j begins with moment j. For a value u of producer m(u), and an operation o,
// let
//   a^j_u   u is in memory at moment j,
//   r^j_o   o has run before moment j, and runs again in interval j,
//   f^j_o   o runs for the first time in interval j (given by the order).
// It minimises the sum of cost_o r^j_o, where
//   (1) a^j_u + r^j_m(u) >= 1 for each u computed before that a first run in interval j reads,
//   (2) r^j_o <= a^j_u + r^j_m(u) for each read u of o,
//   (3) a^(j+1)_u <= a^j_u + r^j_m(u) + f^j_m(u); for results also after the last interval,
//   (4) the values in memory at moment j leave room for its operation's writes and workspace,
//   (5) for chosen pairs of an operation and an interval: if it runs again there, the values
//       in memory throughout the interval leave room for its reads, writes and workspace.
//       These values are in memory at moment j+1, or the end, and not recomputed in interval j.
// With a link to the host, values can also come back from there: MomentCopies has the columns and
// rows for that, and (5) is about the values that cannot be offloaded. Runs before the first
// moment, repeats within one interval, and memory at all other times are not charged. So the
// minimum cost of the program is a lower bound on the overhead of every plan that keeps the order
// and the budget: docs/bounds.md has the proof.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/planning/algorithms/best/solve_program.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// The copies to the host and back in a program over moments (moment_program.h): columns l, H and s,
// and the windows that copies must fit into. docs/bounds.md, Theorem 9, explains and proves them.
//
//   l^j_u   u is not in memory at moment j, is not computed in interval j, and comes back in it,
//   H^j_u   a copy of u to the host is complete at moment j: l^j <= H^j <= H^(j+1),
//   s^j     the time in interval j that is neither that of first runs nor of the reruns in r^j;
//           s^0 is that before the first moment.

// A window of the moment at position `moment` of the order.
struct ChargedWindow {
  int32_t moment = 0;
  CopyWindow window;

  auto operator<=>(const ChargedWindow&) const = default;
};

class MomentCopies {
 public:
  // Keeps references to all of these. Times in rows and costs are in units of `unit`.
  MomentCopies(const RunProblem& problem, std::span<const OpId> order,
               std::span<const int32_t> moments, const CopyTimes& times, int64_t unit,
               MipModel* model);

  // Add moments in ascending order; `kept` has the columns of a^j by value.
  void AddMoment(const std::vector<int>& kept);
  int LoadOf(size_t j, int32_t value) const { return loads_[j][At(value)]; }
  // Call after adding all moments. `reruns` has the columns of r^j by moment and operation.
  void AddWindow(const ChargedWindow& charged, const std::vector<std::vector<int>>& reruns);
  // Returns the windows that a solution exceeds most: at most two per moment.
  std::vector<ChargedWindow> FindExceeded(const std::vector<double>& values,
                                          const std::vector<std::vector<int>>& reruns) const;
  // Returns how much the columns of s may exceed 1 in total in a solution of this cost.
  size_t WaitsBeyondOne(double cost) const;

 private:
  // A window as a row: the sum of copies less reruns and waits is at most `length`.
  struct Row {
    std::vector<MipEntry> entries;
    double length = 0;
  };

  Row RowOf(const ChargedWindow& charged, const std::vector<std::vector<int>>& reruns) const;
  void AddElapsed(size_t interval, const std::vector<std::vector<int>>& reruns, Row* row) const;
  void AddOuts(size_t j, int32_t from, Row* row) const;
  void AddIns(size_t j, int32_t to, Row* row) const;
  std::vector<double> ElapsedByInterval(const std::vector<double>& values,
                                        const std::vector<std::vector<int>>& reruns) const;
  std::optional<CopyWindow> FindMostExceededOut(size_t j, const std::vector<double>& values,
                                                const std::vector<double>& elapsed) const;
  std::optional<CopyWindow> FindMostExceededIn(size_t j, const std::vector<double>& values,
                                               const std::vector<double>& elapsed) const;
  double Units(int64_t time) const { return static_cast<double>(time / unit_); }
  double LengthBetween(int32_t first, int32_t end) const;
  double Slight() const { return 1e-4 * wait_unit_; }  // Within the solver's tolerance.

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const std::span<const int32_t> moments_;
  const CopyTimes& times_;
  const int64_t unit_;
  MipModel* const model_;
  std::vector<int64_t> clock_;    // The cost of the order's runs before each position.
  std::vector<int32_t> made_at_;  // By value: the position of its producer's first run.
  std::vector<std::vector<int32_t>> first_reads_;  // By moment and value, at or after the moment.
  double wait_unit_ = 1;                  // The time that a wait of 1 stands for, in units.
  std::vector<int> waits_;                // Columns of s, from s^0 on.
  std::vector<std::vector<int>> loads_;   // Columns of l^j, by value.
  std::vector<std::vector<int>> hosted_;  // Columns of H^j, by value.
};

struct MomentPlan {
  std::vector<std::vector<bool>> kept;    // By moment: a^j, by value.
  std::vector<std::vector<bool>> loaded;  // By moment: l^j, by value. Empty without a link.
  // Windows that the plan's copies exceed and that are not in the program.
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

// `order` has every operation once, each after the producers of its reads. With `times`, plans may
// offload values. kUnsupported: built without a MIP solver, or too large for it.
Result<MomentOutcome> SolveMoments(const RunProblem& problem, std::span<const OpId> order,
                                   const ChargedSteps& charged, int64_t budget,
                                   const ProgramLimits<MomentPlan>& limits,
                                   const CopyTimes* times = nullptr);

// Turns the plan into runs. Within an interval, missing values are recomputed just before they are
// read; at its end, those that the next moment needs.
Runs ExpandMoments(const RunProblem& problem, std::span<const OpId> order,
                   std::span<const int32_t> moments, const MomentPlan& plan);

}  // namespace ckplan
