// Decides in which order the elements of each tensor of a step lie in memory
// (lib/problem/ops/layout.h), once, before its operators are prepared. Sizes, schedules and plans
// do not depend on it.
//
//   x ─▶ Conv ─ a ─▶ BatchNormalization ─ b ─▶ Relu ─ c ─▶ Conv ─ d ─▶ Flatten
//
// Operators that take their tensors alike join these to sets: here {a, b, c}. A set has its
// channels last if an operator that prefers that reads or writes one of its tensors, and nothing
// needs the order of the model. x and d keep that order: the one comes from the batch, the other is
// read as a matrix. Operators of the kind kEach stand at the borders, and reorder in their
// workspaces.
#pragma once

#include <functional>

#include "lib/executor/backend/backend.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

using OrdersOfOp = std::function<ElementOrders(const OpSpec&)>;

// Marks tensors and operands. Operators that need not know about orders are described on tensors as
// they lie in memory (InStoredOrder).
void ChooseOrders(StepGraph& step, const OrdersOfOp& orders_of);
void ChooseOrders(StepGraph& step, const Backend& backend);

}  // namespace ckplan
