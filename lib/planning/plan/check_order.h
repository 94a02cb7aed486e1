// Checks the order of forward and backward steps, as a part of check.cc, which calls it before it
// replays each step. It shares no code with lib/problem/schedule/schedule.h, which states the
// rules.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Each member but End is called for one step and returns the fault of that step, if any.
class OrderCheck {
 public:
  // If the order is not free, backward must be the reverse of forward. The steps may name nodes
  // that the graph does not have.
  OrderCheck(const TensorGraph& graph, const Schedule& schedule, bool is_free);

  std::optional<std::string> Forward(NodeId id);
  std::optional<std::string> Loss();
  std::optional<std::string> Backward(NodeId id);
  std::optional<std::string> End() const;

  bool has_loss() const { return has_loss_; }

 private:
  bool IsReverse(const Schedule& schedule) const;
  void CountContributors();
  std::optional<std::string> AddContributions(NodeId id);
  bool Receives(NodeId id) const;

  const TensorGraph& graph_;
  bool must_mirror_ = true;
  bool has_loss_ = false;
  size_t backward_count_ = 0;
  std::vector<NodeId> forward_;  // Before the loss, in the order of first runs.
  IdVector<NodeId, bool> has_run_;
  IdVector<NodeId, bool> has_run_backward_;
  // For each tensor's gradient: the number of nodes that contribute to it, the number that have not
  // done so yet, and the last that did.
  std::map<TensorId, size_t> contributors_;
  std::map<TensorId, size_t> missing_;
  std::map<TensorId, NodeId> last_;
  std::map<int32_t, NodeId> last_trainer_;  // Indexed by the parameters that several nodes train.
};

}  // namespace ckplan
