#include "lib/plan/plan.h"

namespace ckplan {

std::string_view NameOf(NodeAction action) {
  switch (action) {
    case NodeAction::kKeep:
      return "keep";
    case NodeAction::kRecompute:
      return "recompute";
    case NodeAction::kTransient:
      return "transient";
  }
  return "";
}

Bytes OptimizerState(Optimizer optimizer, Bytes parameter_gradients) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return Bytes(0);
    case Optimizer::kMomentum:
      return parameter_gradients;
    case Optimizer::kAdam:
      return 2 * parameter_gradients;
  }
  return Bytes(0);
}

Bytes TotalConstants(const ConstantMemory& constants, Bytes optimizer_state) {
  return constants.parameters + constants.parameter_gradients + constants.inputs + optimizer_state;
}

Bytes TotalConstants(const PlanFigures& figures) {
  return TotalConstants(figures.constants, figures.optimizer_state);
}

}  // namespace ckplan
