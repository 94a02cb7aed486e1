// The least cuts of offload_cut.h for given prices.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/copy_times.h"
#include "lib/planning/algorithms/best/moment_network.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// A stretch of the order's first runs that copies must fit into, beside reruns and waits. Copies
// out of what is made at `position` or later end before the moment. Copies back of what is first
// read at `position` or before begin after it; those whose values only reruns read, or that are
// results, have until the end, the position after the last run.
struct CopyWindow {
  bool is_out = false;
  int32_t position = 0;

  auto operator<=>(const CopyWindow&) const = default;
};

// What a moment does with the values that are needed after it.
struct MomentChoice {
  int64_t cost = 0;             // What the reruns cost.
  int64_t bytes = 0;            // What those kept values take that need not be kept.
  std::vector<bool> kept;       // By value.
  std::vector<int32_t> loaded;  // Values.

  bool operator==(const MomentChoice&) const = default;
};

struct CopyPrices {
  double per_byte = 0;            // Cost per byte in memory at the moment.
  std::vector<double> by_window;  // Cost per time of copies: those of each direction sum up to at
                                  // most 1.
};

class OffloadNetwork {
 public:
  // Keeps references to the first three.
  OffloadNetwork(const RunProblem& problem, const CopyTimes& times, std::span<const OpId> order,
                 size_t moment);

  int64_t certain_bytes() const { return network_.certain_bytes(); }
  MomentChoice KeepAll() const;
  // Keeps the fewest bytes, whatever that costs.
  MomentChoice KeepLeast();
  // Returns a choice that is about the cheapest at these prices, and the bound that they prove for
  // this room. Prices are rounded first, so that the bound is exact.
  std::pair<MomentChoice, int64_t> Cut(const CopyPrices& prices,
                                       std::span<const CopyWindow> windows, int64_t room);

  // The cost of the first runs within the window.
  int64_t LengthOf(const CopyWindow& window) const;
  // The time of the choice's copies that must fit into the window.
  int64_t CopiesIn(const MomentChoice& choice, const CopyWindow& window) const;
  // The positions of the first run of the value's maker, and of the first read after the moment.
  int32_t MadeAt(int32_t value) const { return made_at_[At(value)]; }
  int32_t FirstReadAt(int32_t value) const { return first_read_at_[At(value)]; }
  int64_t cost_of_order() const { return clock_.back(); }

 private:
  using ValueArc = MomentNetwork::ValueArc;
  using OpArc = MomentNetwork::OpArc;
  // Prices as whole numbers.
  struct WholePrices;

  WholePrices Rounded(const CopyPrices& prices, std::span<const CopyWindow> windows) const;
  // The price of the value's copies, in units of 2^-kFractionBits.
  __int128 CopyPrice(const WholePrices& prices, int32_t value) const;
  int ShiftFor(const WholePrices& prices) const;
  int64_t CapacityOf(const WholePrices& prices, const ValueArc& arc, int shift) const;
  int64_t BoundOf(const WholePrices& prices, std::span<const CopyWindow> windows, int64_t room,
                  int64_t least_cut, int shift) const;
  MomentChoice ChoiceOfCut(const WholePrices& prices) const;
  bool MayMove(int32_t value) const { return times_.may_move[At(value)]; }

  const CopyTimes& times_;
  const int32_t moment_;
  MomentNetwork network_;
  std::vector<int64_t> clock_;  // The cost of the order's runs before each position.
  std::vector<int32_t> made_at_;
  std::vector<int32_t> first_read_at_;
};

}  // namespace ckplan
