#include "lib/planning/algorithms/best/curve/price_master.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {
namespace {

// After this many pivots, take the prices as they are: any prices give a bound.
constexpr int kMaxPivots = 400;
// After this many, the first improving column enters instead of the best, which ends cycles.
constexpr int kPivotsByBest = 200;
constexpr double kMinGain = 1e-7;
constexpr double kMinPivot = 1e-9;
// Bytes are counted in units of this part of the largest room.
constexpr double kUnitParts = 1e3;

// A revised simplex. Rows are the moments and the sum of shares. Columns are the choices, then the
// unused room at each moment, then the excess bytes.
class Simplex {
 public:
  Simplex(const std::vector<NestedChoice>& choices, std::span<const int64_t> room, double unit,
          double dearest)
      : choices_(choices),
        room_(room),
        unit_(unit),
        dearest_(dearest),
        moments_(room.size()),
        basis_(moments_ + 1),
        level_(moments_ + 1),
        inverse_(moments_ + 1, std::vector<double>(moments_ + 1)),
        dual_(moments_ + 1),
        change_(moments_ + 1) {
    StartFromFirst();
  }

  // Returns the number of pivots.
  int Solve() {
    for (int pivot = 0;; ++pivot) {
      UpdateDual();
      if (pivot == kMaxPivots) return pivot;
      const size_t entering = FindEnteringColumn(pivot > kPivotsByBest);
      if (entering == ColumnCount() || !Exchange(entering)) return pivot;
    }
  }

  double value() const {
    double value = 0;
    for (size_t row = 0; row < basis_.size(); ++row) value += CostOf(basis_[row]) * level_[row];
    return value;
  }
  double PriceAt(size_t moment) const { return std::max(0.0, -dual_[moment] / unit_); }

 private:
  size_t ColumnCount() const { return choices_.size() + 2 * moments_; }

  double Entry(size_t column, size_t row) const {
    if (column < choices_.size()) {
      return row < moments_ ? static_cast<double>(choices_[column].bytes[row]) / unit_ : 1.0;
    }
    column -= choices_.size();
    if (column < moments_) return column == row ? 1.0 : 0.0;
    return column - moments_ == row ? -1.0 : 0.0;
  }

  double CostOf(size_t column) const {
    if (column < choices_.size()) return static_cast<double>(choices_[column].cost);
    return column < choices_.size() + moments_ ? 0.0 : dearest_;
  }

  // The first choice alone is a solution, with unused room or excess bytes.
  void StartFromFirst() {
    level_[moments_] = 1;
    basis_[moments_] = 0;
    inverse_[moments_][moments_] = 1;
    for (size_t row = 0; row < moments_; ++row) {
      const double bytes = Entry(0, row);
      const double left = static_cast<double>(room_[row]) / unit_ - bytes;
      const double sign = left >= 0 ? 1.0 : -1.0;
      basis_[row] = choices_.size() + row + (left >= 0 ? 0 : moments_);
      level_[row] = left * sign;
      inverse_[row][row] = sign;
      inverse_[row][moments_] = -bytes * sign;
    }
  }

  void UpdateDual() {
    for (size_t row = 0; row <= moments_; ++row) {
      dual_[row] = 0;
      for (size_t k = 0; k <= moments_; ++k) dual_[row] += CostOf(basis_[k]) * inverse_[k][row];
    }
  }

  // Returns the column that reduces the cost most, or the first that does; ColumnCount() if none.
  size_t FindEnteringColumn(bool takes_first) const {
    size_t best = ColumnCount();
    double least = -kMinGain * (1 + std::abs(dual_[moments_]));
    for (size_t column = 0; column < ColumnCount(); ++column) {
      double reduced = CostOf(column);
      for (size_t row = 0; row <= moments_; ++row) reduced -= dual_[row] * Entry(column, row);
      if (reduced >= least) continue;
      least = reduced;
      best = column;
      if (takes_first) break;
    }
    return best;
  }

  // Returns whether some column had to leave for the new one.
  bool Exchange(size_t entering) {
    const size_t rows = moments_ + 1;
    for (size_t k = 0; k < rows; ++k) {
      change_[k] = 0;
      for (size_t row = 0; row < rows; ++row) change_[k] += inverse_[k][row] * Entry(entering, row);
    }
    size_t leaving = rows;
    double ratio = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < rows; ++k) {
      if (change_[k] <= kMinPivot || level_[k] / change_[k] >= ratio) continue;
      ratio = level_[k] / change_[k];
      leaving = k;
    }
    if (leaving == rows) return false;
    for (size_t k = 0; k < rows; ++k) level_[k] = std::max(0.0, level_[k] - ratio * change_[k]);
    level_[leaving] = ratio;
    basis_[leaving] = entering;
    for (double& entry : inverse_[leaving]) entry /= change_[leaving];
    for (size_t k = 0; k < rows; ++k) {
      if (k == leaving || change_[k] == 0) continue;
      for (size_t row = 0; row < rows; ++row) {
        inverse_[k][row] -= change_[k] * inverse_[leaving][row];
      }
    }
    return true;
  }

  const std::vector<NestedChoice>& choices_;
  const std::span<const int64_t> room_;
  const double unit_;
  const double dearest_;
  const size_t moments_;
  std::vector<size_t> basis_;  // The column of each row.
  std::vector<double> level_;  // The value of that column.
  std::vector<std::vector<double>> inverse_;
  std::vector<double> dual_;
  std::vector<double> change_;
};

}  // namespace

void PriceMaster::Solve(std::span<const int64_t> room, double dearest) {
  int64_t most = 1;
  for (const int64_t bytes : room) most = std::max(most, std::abs(bytes));
  Simplex simplex(choices_, room, static_cast<double>(most) / kUnitParts, dearest);
  pivots_ += simplex.Solve();
  value_ = simplex.value();
  prices_.assign(room.size(), 0);
  for (size_t i = 0; i < room.size(); ++i) prices_[i] = simplex.PriceAt(i);
}

}  // namespace ckplan
