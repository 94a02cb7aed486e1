// The numbers by which plan files refer to the parts of a graph of either kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct PlanIds {
  std::string graph_name;
  IdVector<NodeId, int64_t> nodes;      // The operations of a joint graph.
  IdVector<TensorId, int64_t> tensors;  // The values of a joint graph.
  bool is_joint = false;

  std::string_view node_word() const { return is_joint ? "operation" : "node"; }
  std::string_view tensor_word() const { return is_joint ? "value" : "tensor"; }
};

PlanIds PlanIdsOf(const TrainingStep& step);

}  // namespace ckplan
