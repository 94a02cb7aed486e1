// The checker's judgement of the order of forward and backward steps; a part of check.cc, which
// asks it before it runs each of them. It shares no code with lib/schedule/backward_order.h, which
// says the rules in words.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// Each member but End is called for one step, and returns what is wrong with it there.
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
  // Of each tensor's gradient: how many nodes contribute to it in all, how many have not yet, and
  // the last that did.
  std::map<TensorId, size_t> contributors_;
  std::map<TensorId, size_t> missing_;
  std::map<TensorId, NodeId> last_;
  std::map<int32_t, NodeId> last_trainer_;  // Of the parameters that several nodes train.
};

}  // namespace ckplan
