// The network of the cuts at one moment of an order: offload_cut.h sets its
// capacities.
//
//   source ──inf──▶ N_u ──value arc──▶ R_m ──op arc──▶ sink    u is needed: it is there, or m
//   reruns
//                   N_w ◀─────inf───── R_m                     then m's reads are needed, too
//
// It holds the values that are needed at the moment or later and not certainly kept, and the values
// needed to make them again. Values without bytes are kept at no cost and left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/problem/graph/max_flow.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

class MomentNetwork {
 public:
  struct ValueArc {
    int32_t id;
    int32_t value;
    int32_t head;  // The maker's node, or the sink.
    int64_t bytes;
  };
  struct OpArc {
    int32_t id;
    int32_t op;
    int64_t cost;
  };

  // Keeps a reference to `problem`. A value for which `may_move` is set need not be
  // kept although its maker must not repeat; an empty list sets it for none.
  MomentNetwork(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                const std::vector<bool>& may_move = {});

  const std::vector<ValueArc>& value_arcs() const { return value_arcs_; }
  const std::vector<OpArc>& op_arcs() const { return op_arcs_; }
  // By value: kept by every plan, or without bytes.
  const std::vector<bool>& is_certain() const { return is_certain_; }
  int64_t certain_bytes() const { return certain_bytes_; }
  // Whether the value is made before the moment, and is a result or read at the moment or later.
  bool IsNeeded(int32_t value) const { return is_needed_[At(value)]; }

  // Sets the capacity of the arc with this id.
  void SetCapacity(int32_t id, int64_t capacity) { network_.SetCapacity(id, capacity); }
  // Returns the capacity of a least cut, which the next two functions are about.
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

}  // namespace ckplan
