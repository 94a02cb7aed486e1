// Schedules with transfers (transfers.h) in the form of forward graphs: forward steps, the loss and
// backward steps. Executors run steps in this form.
//
// Plans with transfers are plans of a joint graph. If that is the expansion of a forward graph
// (expand.h), its runs are steps of the forward graph, and what it moves is a tensor or the
// gradient of one. In a step of this form that moves a gradient, the index is the number of tensors
// plus that of the tensor whose gradient it is.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

inline bool IsGradientTransfer(const TensorGraph& graph, const Step& step) {
  return step.is_transfer() && step.index >= static_cast<int32_t>(graph.tensors().size());
}
inline TensorId TensorOfGradientTransfer(const TensorGraph& graph, const Step& step) {
  return TensorId(step.index - static_cast<int32_t>(graph.tensors().size()));
}

// `schedule` must be a plan of the expansion of `graph`. Its memory is the same in both forms, at
// every step. kUnsupported: it moves a gradient that no run reads any more, or a value without
// bytes that only orders runs; steps of a forward graph do not have these in memory.
Result<Schedule> InForwardForm(const TensorGraph& graph, const Expansion& expansion,
                               const Schedule& schedule);

}  // namespace ckplan
