#include "lib/planning/algorithms/best/offload_cut.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/stop.h"

namespace ckplan {

namespace {

// A small linear program: the cheapest mix of known choices under a few limits, by the simplex
// method on a dense table.
//
//   minimise  Σ weight_i · cost_i + wait_0 + wait_1
//   where     Σ weight_i = 1,  Σ weight_i · use_ri <= limit_r + wait of r's group,  all >= 0
//
// Computes in double precision. Nothing is proven by its answer: prices only say where to look for
// a proof (offload_cut.h), and weights which choices are worth trying.
//
// Cost  about as many pivots as limits, or a few times as many, each of limits · choices.

inline constexpr int kNoWait = -1;

struct MixLimit {
  double limit = 0;
  int wait = kNoWait;       // The group whose wait extends the limit: 0, 1 or none.
  std::vector<double> use;  // By choice.
};

struct Mix {
  double cost = 0;
  std::vector<double> weights;  // By choice.
  std::vector<double> prices;   // By limit: what one more unit would save.
  double wait[2] = {0, 0};
};

constexpr double kPivotTolerance = 1e-9;
constexpr double kPriceTolerance = 1e-10;

// Columns: choices, the two waits, a slack per limit, and the right-hand side. Rows: the sum of
// weights, limits, and reduced costs.
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

  // Also stops at the pivot limit; then the mix may not be the cheapest.
  void Solve() {
    const size_t most = 50 * (rows_ + 10);
    for (size_t pivots = 0; pivots < most; ++pivots) {
      const size_t column = FindEnteringColumn(/*is_first_taken=*/pivots > most / 2);
      if (column == columns_) return;
      const size_t row = FindLeavingRow(column);
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

  // Returns the column with the lowest reduced cost, or the first one below zero, which cannot
  // cycle; `columns_` if there is none.
  size_t FindEnteringColumn(bool is_first_taken) const {
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

  size_t FindLeavingRow(size_t column) const {
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

// `start` is a choice within all limits that no wait extends.
Mix FindCheapestMix(const std::vector<double>& costs, const std::vector<MixLimit>& limits,
                    size_t start) {
  MixTable table(costs, limits, start);
  table.Solve();
  return table.Read();
}

// The search for prices ends when the bound is this close to its limit, relative to a step.
constexpr double kNearEnough = 1e-4;
// The maximum number of windows that the search adds.
constexpr size_t kMaxWindows = 60;
// A window counts as exceeded above this part of a step.
constexpr double kExceeded = 1e-7;
// Cuts made at the end to find a choice that fits.
constexpr int kFittingCuts = 12;
// How many choices to return that leave room, and how many that don't.
constexpr size_t kReturnedChoices = 4;

class PriceSearch {
 public:
  PriceSearch(const RunProblem& problem, const CopyTimes& times, std::span<const OpId> order,
              size_t moment, int64_t budget)
      : problem_(problem),
        times_(times),
        order_(order),
        moment_(moment),
        network_(problem, times, order, moment),
        time_unit_(static_cast<double>(std::max<int64_t>(1, network_.cost_of_order()))),
        byte_unit_(static_cast<double>(std::max<int64_t>(1, budget))) {
    const auto op = At(order[moment].index());
    room_ = budget - problem.written_bytes[op] - problem.workspace[op] +
            problem.in_place_bytes[op] - network_.certain_bytes();
  }

  OffloadCut Run(int64_t max_cuts) && {
    MomentChoice all = network_.KeepAll();
    if (all.bytes <= room_) {
      cut_.choices.push_back(ToOffloadChoice(all));
      return std::move(cut_);
    }
    MomentChoice least = network_.KeepMinBytes();
    if (least.bytes > room_) {
      return {.is_feasible = false, .missing_bytes = least.bytes - room_};
    }
    limits_.push_back({Bytes(room_), kNoWait, {}});
    Add(std::move(least));
    Add(std::move(all));
    Search(max_cuts);
    FindFitting();
    ReturnChoices();
    ReturnWindows();
    return std::move(cut_);
  }

 private:
  double Bytes(int64_t bytes) const { return static_cast<double>(bytes) / byte_unit_; }
  double Time(int64_t time) const { return static_cast<double>(time) / time_unit_; }

  void Search(int64_t max_cuts) {
    while (cut_.cuts < max_cuts) {
      PollStop();
      Mix mix = Solve();
      while (AddExceeded(mix)) mix = Solve();
      weights_ = mix.weights;
      if (mix.cost - Time(cut_.added_cost) <= kNearEnough) return;
      const CopyPrices next_prices = PricesOf(mix);
      const bool is_exact = is_mistaken_;
      const bool has_gained =
          Try(is_exact ? next_prices : Between(best_prices_, next_prices), next_prices);
      if (is_exact && !has_gained) return;
    }
  }

  // Makes a cut. Returns whether it found anything new.
  bool Try(const CopyPrices& tried, const CopyPrices& wanted) {
    ++cut_.cuts;
    auto [choice, bound] = network_.Cut(tried, windows_, room_);
    const bool is_better = bound > cut_.added_cost;
    if (is_better || cut_.cuts == 1) best_prices_ = tried;
    cut_.added_cost = std::max(cut_.added_cost, bound);
    const bool is_new = std::find(choices_.begin(), choices_.end(), choice) == choices_.end();
    const bool is_cheaper = is_new && PriceOf(choice, wanted) < mix_price_ - 1e-9;
    if (is_new) Add(std::move(choice));
    // Prices between the best and the wanted ones may be no better than either.
    is_mistaken_ = !is_better && !is_cheaper && !is_mistaken_;
    return is_better || is_new;
  }

  // The choice's cost at these prices, at least that of any mix.
  double PriceOf(const MomentChoice& choice, const CopyPrices& prices) const {
    double price =
        Time(choice.cost) + prices.per_byte * byte_unit_ / time_unit_ * Bytes(choice.bytes);
    for (size_t w = 0; w < windows_.size(); ++w) {
      price += prices.by_window[w] * UseOf(choice, windows_[w]);
    }
    return price;
  }

  double UseOf(const MomentChoice& choice, const CopyWindow& window) const {
    // Copies back may continue during reruns.
    return Time(network_.CopiesIn(choice, window) - (window.is_out ? 0 : choice.cost));
  }

  Mix Solve() {
    Mix mix = FindCheapestMix(costs_, limits_, /*start=*/0);
    mix_price_ = mix.cost;
    for (size_t r = 0; r < limits_.size(); ++r) mix_price_ += mix.prices[r] * limits_[r].limit;
    return mix;
  }

  CopyPrices PricesOf(const Mix& mix) const {
    CopyPrices prices{mix.prices[0] * time_unit_ / byte_unit_, {}};
    prices.by_window.assign(mix.prices.begin() + 1, mix.prices.end());
    return prices;
  }

  static CopyPrices Between(CopyPrices a, const CopyPrices& b) {
    a.per_byte = (a.per_byte + b.per_byte) / 2;
    a.by_window.resize(b.by_window.size());
    for (size_t w = 0; w < b.by_window.size(); ++w) {
      a.by_window[w] = (a.by_window[w] + b.by_window[w]) / 2;
    }
    return a;
  }

  void Add(MomentChoice choice) {
    costs_.push_back(Time(choice.cost));
    limits_[0].use.push_back(Bytes(choice.bytes));
    for (size_t w = 0; w < windows_.size(); ++w) {
      limits_[w + 1].use.push_back(UseOf(choice, windows_[w]));
    }
    choices_.push_back(std::move(choice));
  }

  // Adds the windows in each direction that the mix exceeds most. Returns whether there are any.
  bool AddExceeded(const Mix& mix) {
    if (windows_.size() >= kMaxWindows) return false;
    std::vector<double> out(order_.size() + 1);
    std::vector<double> in(order_.size() + 1);
    double reruns = 0;
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (mix.weights[i] <= 0) continue;
      reruns += mix.weights[i] * costs_[i];
      for (const int32_t value : choices_[i].loaded) {
        out[At(network_.MadeAt(value))] += mix.weights[i] * Time(times_.out[At(value)]);
        in[At(network_.FirstReadAt(value))] += mix.weights[i] * Time(times_.in[At(value)]);
      }
    }
    const bool has_out = AddMostExceeded(true, out, mix.wait[0]);
    const bool has_in = AddMostExceeded(false, in, mix.wait[1] + reruns);
    return has_out || has_in;
  }

  // `copies` has the time of copies by position; `more` is the time on top of first runs.
  bool AddMostExceeded(bool is_out, const std::vector<double>& copies, double more) {
    double sum = 0;
    double most = kExceeded;
    std::optional<CopyWindow> found;
    for (size_t i = 0; i < copies.size(); ++i) {
      const auto position = static_cast<int32_t>(is_out ? copies.size() - 1 - i : i);
      if (copies[At(position)] == 0) continue;
      sum += copies[At(position)];
      const CopyWindow window{is_out, position};
      const double excess = sum - Time(network_.LengthOf(window)) - more;
      if (excess <= most) continue;
      most = excess;
      found = window;
    }
    if (!found || std::find(windows_.begin(), windows_.end(), *found) != windows_.end()) {
      return false;
    }
    MixLimit limit{Time(network_.LengthOf(*found)), is_out ? 0 : 1, {}};
    for (const MomentChoice& choice : choices_) limit.use.push_back(UseOf(choice, *found));
    windows_.push_back(*found);
    limits_.push_back(std::move(limit));
    best_prices_.by_window.push_back(0);
    return true;
  }

  // Raises the price of memory from the best prices until the choice fits, then bisects.
  void FindFitting() {
    CopyPrices prices = best_prices_;
    double low = prices.per_byte;
    std::optional<double> high;
    for (int i = 0; i < kFittingCuts && low > 0; ++i) {
      prices.per_byte = high ? (low + *high) / 2 : low * (1 + std::ldexp(0.01, i));
      auto [choice, bound] = network_.Cut(prices, windows_, room_);
      ++cut_.cuts;
      cut_.added_cost = std::max(cut_.added_cost, bound);
      if (choice.bytes <= room_) {
        high = prices.per_byte;
      } else {
        low = prices.per_byte;
      }
      if (std::find(choices_.begin(), choices_.end(), choice) == choices_.end()) {
        choices_.push_back(std::move(choice));
      }
    }
  }

  // Returns the time that the choice adds according to the program.
  int64_t AddedTimeOf(const MomentChoice& choice) const {
    int64_t wait[2] = {0, 0};
    std::vector<CopyWindow> windows;
    for (const int32_t value : choice.loaded) {
      windows.push_back({true, network_.MadeAt(value)});
      windows.push_back({false, network_.FirstReadAt(value)});
    }
    std::sort(windows.begin(), windows.end());
    windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
    std::vector<int64_t> out(order_.size() + 1);
    std::vector<int64_t> in(order_.size() + 1);
    for (const int32_t value : choice.loaded) {
      out[At(network_.MadeAt(value))] += times_.out[At(value)];
      in[At(network_.FirstReadAt(value))] += times_.in[At(value)];
    }
    for (size_t i = 1; i < in.size(); ++i) {
      in[i] += in[i - 1];
      out[out.size() - 1 - i] += out[out.size() - i];
    }
    for (const CopyWindow& window : windows) {
      const int64_t length = network_.LengthOf(window);
      const int64_t copies = (window.is_out ? out : in)[At(window.position)];
      const int64_t reruns = window.is_out ? 0 : choice.cost;
      int64_t& longest = wait[window.is_out ? 0 : 1];
      longest = std::max(longest, copies - length - reruns);
    }
    return choice.cost + wait[0] + wait[1];
  }

  void ReturnChoices() {
    // Choices that leave room come first.
    std::vector<std::tuple<bool, int64_t, size_t>> sorted;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const bool is_over = choices_[i].bytes > room_;
      const bool is_used = i < weights_.size() ? weights_[i] > 1e-6 : true;
      if (!is_over || is_used) sorted.emplace_back(is_over, AddedTimeOf(choices_[i]), i);
    }
    std::sort(sorted.begin(), sorted.end());
    size_t taken[2] = {0, 0};
    for (const auto& [is_over, added, i] : sorted) {
      if (taken[is_over ? 1 : 0]++ < kReturnedChoices)
        cut_.choices.push_back(ToOffloadChoice(choices_[i]));
    }
  }

  void ReturnWindows() {
    for (size_t w = 0; w < windows_.size(); ++w) {
      if (best_prices_.by_window[w] > 0) cut_.windows.push_back(windows_[w]);
    }
  }

  OffloadChoice ToOffloadChoice(const MomentChoice& choice) const {
    std::vector<bool> loaded(At(problem_.value_count));
    for (const int32_t value : choice.loaded) loaded[At(value)] = true;
    return {{order_.begin(), order_.end()}, moment_, choice.kept, std::move(loaded)};
  }

  const RunProblem& problem_;
  const CopyTimes& times_;
  const std::span<const OpId> order_;
  const size_t moment_;
  OffloadNetwork network_;
  const double time_unit_;
  const double byte_unit_;
  int64_t room_ = 0;
  // The linear program: its limits are the room and the windows.
  std::vector<MomentChoice> choices_;
  std::vector<double> costs_;
  std::vector<CopyWindow> windows_;
  std::vector<MixLimit> limits_;
  double mix_price_ = 0;  // The cost of each choice in the mix at its prices.
  std::vector<double> weights_;
  CopyPrices best_prices_;    // The prices of the best bound.
  bool is_mistaken_ = false;  // The last prices, between the best and the wanted ones, gained
                              // nothing.
  OffloadCut cut_;
};

}  // namespace

OffloadCut CutWithOffload(const RunProblem& problem, const CopyTimes& times,
                          std::span<const OpId> order, size_t moment, int64_t budget,
                          int64_t max_cuts) {
  CKPLAN_CHECK(moment < order.size(), "the moment is a run in the order");
  return PriceSearch(problem, times, order, moment, budget).Run(max_cuts);
}

}  // namespace ckplan
