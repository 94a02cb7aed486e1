// What is proven about a plan of the algorithm `best`: no plan has less overhead, and none a lower
// peak, than so and so much. docs/bounds.md has the theorems, with their proofs.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/units.h"

namespace ckplan {

// The plans that a bound holds for. All have the operations of one graph, in which sums of
// gradients are added up in one order.
enum class BoundScope : uint8_t {
  kOwnOrder,   // Those whose first runs are in the graph's own order.
  kPlanOrder,  // Those whose first runs are in the order of the plan, which is another one.
  kAnyOrder,
};

// Why no plan has less overhead.
enum class OverheadProof : uint8_t {
  kRunOnce,      // What results need must run once.
  kConstraints,  // Theorem 8: what must be recomputed and is read backward runs twice.
  kOrderCut,     // Theorem 4: without recomputation nothing fits, so something runs twice.
  kOneCut,       // Theorem 5: one cut with a multiplier.
  kMoments,      // Theorem 6: the program over moments.
  kFreeMoments,  // The same program, where it also chooses the order.
};

// Why no plan has a lower peak.
enum class PeakProof : uint8_t {
  kWorkingSet,   // Theorems 1 to 3: what a single run needs.
  kOrderCut,     // Theorem 4, where nothing may run twice.
  kMoments,      // Theorem 6: the program over moments has no solution.
  kFreeMoments,  // Nor has it one where it also chooses the order.
};

struct PeakBound {
  Bytes bytes;
  PeakProof proof = PeakProof::kWorkingSet;
  BoundScope scope = BoundScope::kAnyOrder;

  bool operator==(const PeakBound&) const = default;
};

struct Certificate {
  // Of the bound on the overhead, which is PlanFigures::lower_bound_cost.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;
  Cost gap;  // The plan's overhead beyond the bound.
  PeakBound peak;
  Bytes peak_gap;  // The plan's peak beyond that bound.

  bool operator==(const Certificate&) const = default;
};

// As plan files have them: "own-order", "plan-order", "any-order".
std::string_view NameOf(BoundScope scope);
std::string_view NameOf(OverheadProof proof);  // "run-once", "moments", "free-moments", ...
std::string_view NameOf(PeakProof proof);      // "working-set", "order-cut", ...

// For sentences: "in its own order of operations".
std::string_view DescriptionOf(BoundScope scope);

}  // namespace ckplan
