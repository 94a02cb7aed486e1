// Checks the order of forward and backward steps for check.cc, which calls it before replaying each
// step. Independent of lib/problem/schedule/schedule.h, which states the rules.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Each function except End checks one step and returns its fault, if any.
class OrderCheck {
 public:
  // Unless the order is free, backward must be the reverse of forward. Steps may name nodes that
  // the graph does not have.
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
  // For each tensor's gradient: how many nodes contribute to it, how many have yet to contribute,
  // and which one was last.
  std::map<TensorId, size_t> contributors_;
  std::map<TensorId, size_t> missing_;
  std::map<TensorId, NodeId> last_;
  std::map<int32_t, NodeId> last_trainer_;  // Indexed by parameters that several nodes train.
};

}  // namespace ckplan
