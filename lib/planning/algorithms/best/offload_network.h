// The minimum cuts of offload_cut.h for given prices.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/problem/cost/link.h"
#include "lib/problem/graph/max_flow.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// The times of copies between the device and the host, by value.

// Indexed by value of a RunProblem. Times are in nanoseconds, like costs.
struct CopyTimes {
  std::vector<bool> may_move;  // Whether plans may offload the value.
  std::vector<int64_t> out;    // To the host.
  std::vector<int64_t> in;     // Back to the device.
  bool is_half_duplex = false;
};

// Times are capped at kMaxTotalCost; larger ones would not improve any bound.
CopyTimes CopyTimesOf(const RunProblem& problem, const Link& link, std::vector<bool> may_move);

// The network of the cuts at one moment of an order. offload_cut.h describes its capacities.
//
//   source ──inf──▶ N_u ──value arc──▶ R_m ──op arc──▶ sink    u is needed: it is there, or m
//   reruns
//                   N_w ◀─────inf───── R_m                     then m's reads are needed, too
//
// It holds the values that are needed at the moment or later and not certainly kept, and the values
// needed to recompute them. Values without bytes are kept for free and left out.
class MomentNetwork {
 public:
  struct ValueArc {
    int32_t id;
    int32_t value;
    int32_t head;  // The producer's node, or the sink.
    int64_t bytes;
  };
  struct OpArc {
    int32_t id;
    int32_t op;
    int64_t cost;
  };

  // Keeps a reference to `problem`. A value in `may_move` need not be kept even if its producer
  // must not repeat; the list may be empty.
  MomentNetwork(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                const std::vector<bool>& may_move = {});

  const std::vector<ValueArc>& value_arcs() const { return value_arcs_; }
  const std::vector<OpArc>& op_arcs() const { return op_arcs_; }
  // By value: every plan keeps it, or it has no bytes.
  const std::vector<bool>& is_certain() const { return is_certain_; }
  int64_t certain_bytes() const { return certain_bytes_; }
  // Tells whether the value is computed before the moment, and is a result or read at the moment or
  // later.
  bool IsNeeded(int32_t value) const { return is_needed_[At(value)]; }

  // Sets the capacity of the arc with this id.
  void SetCapacity(int32_t id, int64_t capacity) { network_.SetCapacity(id, capacity); }
  // Returns the capacity of a minimum cut. IsCut refers to this cut.
  int64_t Solve();
  bool IsCut(const ValueArc& arc) const { return side_[At(arc.value)] && !side_[At(arc.head)]; }
  bool IsCut(const OpArc& arc) const { return side_[At(NodeOfOp(arc.op))]; }

 private:
  bool IsMadeBefore(int32_t value) const;
  bool MayBeRemade(int32_t value) const;
  void FindNeeded(std::span<const OpId> order, size_t moment);
  void FindCertain(int32_t op);
  bool IsFree(int32_t value) const {
    return is_certain_[At(value)] || problem_.bytes[At(value)] == 0;
  }
  void Reach(int32_t value);
  void AddValue(int32_t value);
  int32_t NodeOfOp(int32_t op) const { return problem_.value_count + op; }

  const RunProblem& problem_;
  const std::vector<bool> may_move_;
  std::vector<bool> is_before_;  // Operations that have run before the moment.
  std::vector<bool> is_needed_;
  std::vector<bool> is_certain_;
  int64_t certain_bytes_ = 0;
  MaxFlow network_;  // Nodes: values, then operations, then the sink.
  const int32_t sink_;
  std::vector<bool> is_in_network_;
  std::vector<int32_t> values_;  // The values in the network.
  std::vector<ValueArc> value_arcs_;
  std::vector<OpArc> op_arcs_;
  std::vector<bool> side_;  // The nodes on the source's side of the last cut.
};

// A stretch of the order's first runs, and reruns and waits in it, that copies must fit into.
// Copies out of values written at `position` or later end before the moment. Copies back of values
// first read at `position` or before begin after it; values that only reruns read, or that are
// results, have until the end, the position after the last run.
struct CopyWindow {
  bool is_out = false;
  int32_t position = 0;

  auto operator<=>(const CopyWindow&) const = default;
};

// What a moment does with the values needed after it.
struct MomentChoice {
  int64_t cost = 0;             // The cost of reruns.
  int64_t bytes = 0;            // The size of values kept by choice.
  std::vector<bool> kept;       // By value.
  std::vector<int32_t> loaded;  // Values.

  bool operator==(const MomentChoice&) const = default;
};

struct CopyPrices {
  double per_byte = 0;            // Cost per byte in memory at the moment.
  std::vector<double> by_window;  // Cost per time of copies; each direction sums to at
                                  // most 1.
};

class OffloadNetwork {
 public:
  // Keeps references to the first three.
  OffloadNetwork(const RunProblem& problem, const CopyTimes& times, std::span<const OpId> order,
                 size_t moment);

  int64_t certain_bytes() const { return network_.certain_bytes(); }
  MomentChoice KeepAll() const;
  // Keeps as few bytes as possible at any cost.
  MomentChoice KeepMinBytes();
  // Returns a choice that is about the cheapest at these prices, and the bound that they prove for
  // this room. Rounds prices first, so the bound is exact.
  std::pair<MomentChoice, int64_t> Cut(const CopyPrices& prices,
                                       std::span<const CopyWindow> windows, int64_t room);

  // The cost of the first runs within the window.
  int64_t LengthOf(const CopyWindow& window) const;
  // The time of the choice's copies that must fit into the window.
  int64_t CopiesIn(const MomentChoice& choice, const CopyWindow& window) const;
  // The positions of the first run of the value's producer, and of the first read after the moment.
  int32_t MadeAt(int32_t value) const { return made_at_[At(value)]; }
  int32_t FirstReadAt(int32_t value) const { return first_read_at_[At(value)]; }
  int64_t cost_of_order() const { return clock_.back(); }

 private:
  using ValueArc = MomentNetwork::ValueArc;
  using OpArc = MomentNetwork::OpArc;
  // Prices as whole numbers.
  struct WholePrices;

  WholePrices RoundPrices(const CopyPrices& prices, std::span<const CopyWindow> windows) const;
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
