#include "lib/planning/plan/certificate.h"

namespace ckplan {

std::string_view NameOf(BoundScope scope) {
  switch (scope) {
    case BoundScope::kOwnOrder:
      return "own-order";
    case BoundScope::kPlanOrder:
      return "plan-order";
    case BoundScope::kAnyOrder:
      return "any-order";
  }
  return "";
}

std::string_view NameOf(OverheadProof proof) {
  switch (proof) {
    case OverheadProof::kRunOnce:
      return "run-once";
    case OverheadProof::kConstraints:
      return "constraints";
    case OverheadProof::kOrderCut:
      return "order-cut";
    case OverheadProof::kOneCut:
      return "one-cut";
    case OverheadProof::kMoments:
      return "moments";
    case OverheadProof::kFreeMoments:
      return "free-moments";
  }
  return "";
}

std::string_view NameOf(PeakProof proof) {
  switch (proof) {
    case PeakProof::kWorkingSet:
      return "working-set";
    case PeakProof::kOrderCut:
      return "order-cut";
    case PeakProof::kMoments:
      return "moments";
    case PeakProof::kFreeMoments:
      return "free-moments";
  }
  return "";
}

std::string_view DescriptionOf(BoundScope scope) {
  switch (scope) {
    case BoundScope::kOwnOrder:
      return "in the graph's own order";
    case BoundScope::kPlanOrder:
      return "in its order of operations";
    case BoundScope::kAnyOrder:
      return "in any order";
  }
  return "";
}

}  // namespace ckplan
