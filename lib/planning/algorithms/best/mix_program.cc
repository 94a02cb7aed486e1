#include "lib/planning/algorithms/best/mix_program.h"

#include <cmath>
#include <utility>

namespace ckplan {
namespace {

constexpr double kPivotTolerance = 1e-9;
constexpr double kPriceTolerance = 1e-10;

// Columns: choices, the two waits, a slack for each limit, and the right-hand side. Rows: the sum
// of weights, limits, and the reduced costs.
class MixTable {
 public:
  MixTable(const std::vector<double>& costs, const std::vector<MixLimit>& limits, size_t start)
      : choices_(costs.size()),
        rows_(limits.size() + 1),
        columns_(costs.size() + 2 + limits.size()),
        cells_((rows_ + 1) * (columns_ + 1)),
        basis_(rows_) {
    for (size_t i = 0; i < choices_; ++i) {
      Cell(0, i) = 1;
      Cell(rows_, i) = costs[i];
    }
    Cell(0, columns_) = 1;
    for (size_t group = 0; group < 2; ++group) Cell(rows_, choices_ + group) = 1;
    for (size_t r = 0; r < limits.size(); ++r) AddLimit(r, limits[r]);
    Pivot(0, start);
    for (int group = 0; group < 2; ++group) WaitFor(group, limits);
  }

  // Stops after so many pivots as well: then the mix is not the cheapest.
  void Solve() {
    const size_t most = 50 * (rows_ + 10);
    for (size_t pivots = 0; pivots < most; ++pivots) {
      const size_t column = Entering(/*is_first_taken=*/pivots > most / 2);
      if (column == columns_) return;
      const size_t row = Leaving(column);
      if (row == rows_) return;
      Pivot(row, column);
    }
  }

  Mix Read() const {
    Mix mix;
    mix.cost = -Cell(rows_, columns_);
    mix.weights.resize(choices_);
    for (size_t row = 0; row < rows_; ++row) {
      const size_t column = basis_[row];
      if (column < choices_) mix.weights[column] = Cell(row, columns_);
      if (column == choices_ || column == choices_ + 1) {
        mix.wait[column - choices_] = Cell(row, columns_);
      }
    }
    for (size_t r = 0; r + 1 < rows_; ++r) mix.prices.push_back(Cell(rows_, SlackOf(r)));
    return mix;
  }

 private:
  double& Cell(size_t row, size_t column) { return cells_[row * (columns_ + 1) + column]; }
  double Cell(size_t row, size_t column) const { return cells_[row * (columns_ + 1) + column]; }
  size_t SlackOf(size_t limit) const { return choices_ + 2 + limit; }

  void AddLimit(size_t r, const MixLimit& limit) {
    const size_t row = r + 1;
    for (size_t i = 0; i < choices_; ++i) Cell(row, i) = limit.use[i];
    if (limit.wait != kNoWait) Cell(row, choices_ + static_cast<size_t>(limit.wait)) = -1;
    Cell(row, SlackOf(r)) = 1;
    Cell(row, columns_) = limit.limit;
    basis_[row] = SlackOf(r);
  }

  // Makes the group wait as long as its most exceeded limit needs.
  void WaitFor(int group, const std::vector<MixLimit>& limits) {
    size_t most = 0;
    for (size_t r = 0; r < limits.size(); ++r) {
      if (limits[r].wait != group || Cell(r + 1, columns_) >= 0) continue;
      if (most == 0 || Cell(r + 1, columns_) < Cell(most, columns_)) most = r + 1;
    }
    if (most > 0) Pivot(most, choices_ + static_cast<size_t>(group));
  }

  // Returns the column of the least reduced cost, or the first one below zero, which cannot cycle;
  // `columns_` if there is none.
  size_t Entering(bool is_first_taken) const {
    size_t best = columns_;
    double least = -kPriceTolerance;
    for (size_t column = 0; column < columns_; ++column) {
      if (Cell(rows_, column) >= least) continue;
      best = column;
      least = Cell(rows_, column);
      if (is_first_taken) break;
    }
    return best;
  }

  size_t Leaving(size_t column) const {
    size_t best = rows_;
    double least = 0;
    for (size_t row = 0; row < rows_; ++row) {
      if (Cell(row, column) <= kPivotTolerance) continue;
      const double ratio = Cell(row, columns_) / Cell(row, column);
      if (best != rows_ && (ratio > least || (ratio == least && basis_[row] > basis_[best]))) {
        continue;
      }
      best = row;
      least = ratio;
    }
    return best;
  }

  void Pivot(size_t row, size_t column) {
    const double scale = 1 / Cell(row, column);
    for (size_t k = 0; k <= columns_; ++k) Cell(row, k) *= scale;
    for (size_t other = 0; other <= rows_; ++other) {
      const double factor = Cell(other, column);
      if (other == row || factor == 0) continue;
      for (size_t k = 0; k <= columns_; ++k) Cell(other, k) -= factor * Cell(row, k);
    }
    basis_[row] = column;
  }

  const size_t choices_;
  const size_t rows_;
  const size_t columns_;
  std::vector<double> cells_;
  std::vector<size_t> basis_;
};

}  // namespace

Mix CheapestMix(const std::vector<double>& costs, const std::vector<MixLimit>& limits,
                size_t start) {
  MixTable table(costs, limits, start);
  table.Solve();
  return table.Read();
}

}  // namespace ckplan
