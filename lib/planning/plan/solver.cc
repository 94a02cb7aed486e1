#include "lib/planning/plan/solver.h"

namespace ckplan {

std::string_view NameOf(Guarantee guarantee) {
  switch (guarantee) {
    case Guarantee::kNone:
      return "none";
    case Guarantee::kBaseline:
      return "baseline";
    case Guarantee::kHeuristic:
      return "heuristic";
    case Guarantee::kOptimalInClass:
      return "optimal in its class";
  }
  return "";
}

std::string_view NameOf(GraphClass graphs) {
  switch (graphs) {
    case GraphClass::kChainOfSplittingVertices:
      return "chain of splitting vertices";
    case GraphClass::kAnyDag:
      return "any graph";
  }
  return "";
}

}  // namespace ckplan
