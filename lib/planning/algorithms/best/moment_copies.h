// The copies to the host and back in a program over moments (moment_program.h): columns l, H and s,
// and the windows that copies must fit into. docs/bounds.md, Theorem 9, explains and proves them.
//
//   l^j_u   u is not in memory at moment j, is not made in interval j, and comes back in it,
//   H^j_u   a copy of u to the host is complete at moment j: l^j <= H^j <= H^(j+1),
//   s^j     the time in interval j that is neither that of first runs nor of the reruns in r^j;
//           s^0 is that before the first moment.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/copy_times.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

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

  // Moments come in ascending order; `kept` has the columns of a^j by value.
  void AddMoment(const std::vector<int>& kept);
  int LoadOf(size_t j, int32_t value) const { return loads_[j][At(value)]; }
  // `reruns` has the columns of r^j by moment and operation. After all moments were added.
  void AddWindow(const ChargedWindow& charged, const std::vector<std::vector<int>>& reruns);
  // Returns the windows that a solution exceeds most: two at most for each moment.
  std::vector<ChargedWindow> Exceeded(const std::vector<double>& values,
                                      const std::vector<std::vector<int>>& reruns) const;
  // Returns how much the columns of s may exceed 1 together in a solution of this cost.
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
  std::vector<double> ElapsedIn(const std::vector<double>& values,
                                const std::vector<std::vector<int>>& reruns) const;
  std::optional<CopyWindow> MostExceededOut(size_t j, const std::vector<double>& values,
                                            const std::vector<double>& elapsed) const;
  std::optional<CopyWindow> MostExceededIn(size_t j, const std::vector<double>& values,
                                           const std::vector<double>& elapsed) const;
  double Units(int64_t time) const { return static_cast<double>(time / unit_); }
  double LengthBetween(int32_t first, int32_t end) const;
  double Slight() const { return 1e-4 * wait_unit_; }  // Less is due to the solver's tolerance.

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const std::span<const int32_t> moments_;
  const CopyTimes& times_;
  const int64_t unit_;
  MipModel* const model_;
  std::vector<int64_t> clock_;    // The cost of the order's runs before each position.
  std::vector<int32_t> made_at_;  // By value: the position of its maker's first run.
  std::vector<std::vector<int32_t>> first_reads_;  // By moment and value, at or after the moment.
  double wait_unit_ = 1;                  // The time that a wait of 1 stands for, in units.
  std::vector<int> waits_;                // Columns of s, from s^0 on.
  std::vector<std::vector<int>> loads_;   // Columns of l^j, by value.
  std::vector<std::vector<int>> hosted_;  // Columns of H^j, by value.
};

}  // namespace ckplan
