// Decides once, before a step's operators are prepared, in which order each tensor's elements are
// stored (lib/problem/ops/layout.h). Sizes, schedules and plans don't depend on it.
//
//   x ─▶ Conv ─ a ─▶ BatchNormalization ─ b ─▶ Relu ─ c ─▶ Conv ─ d ─▶ Flatten
//
// Operators that need the same order for their tensors join them into sets: here {a, b, c}. A set
// is channels-last if an operator that prefers this order reads or writes one of its tensors, and
// nothing requires the model's order. x and d keep the model's order: x comes from the batch, and d
// is read as a matrix. Operators of kind kEach sit between sets, and reorder in their workspaces.
#pragma once

#include <functional>

#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

using OrdersOfOp = std::function<ElementOrders(const OpSpec&)>;

// Marks tensors and operands. Operators that are independent of the order get descriptions of the
// tensors as stored (InStoredOrder).
void ChooseOrders(StepGraph& step, const OrdersOfOp& orders_of);
void ChooseOrders(StepGraph& step, const Backend& backend);

}  // namespace ckplan
