// Lower bounds on the overhead and the peak of any plan, which the algorithm `best` proves for its
// plans. docs/bounds.md contains the theorems and proofs.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/units.h"

namespace ckplan {

// The plans that a bound covers. All contain the operations of one graph and sum gradients in one
// order.
enum class BoundScope : uint8_t {
  kOwnOrder,   // Plans that first run operations in the graph's own order.
  kPlanOrder,  // Plans in this plan's order of first runs, unlike the graph's.
  kAnyOrder,
};

// The proof that no plan has less overhead.
enum class OverheadProof : uint8_t {
  kRunOnce,      // Every operation that a result needs runs at least once.
  kConstraints,  // Theorem 8: backward reads a value that must be recomputed.
  kOrderCut,     // Theorem 4: nothing fits without recomputation, so something runs twice.
  kOneCut,       // Theorem 5: one cut with a multiplier.
  kMoments,      // Theorem 6: the linear program over moments.
  kFreeMoments,  // The same program, which also chooses the order.
};

// The proof that no plan has a lower peak.
enum class PeakProof : uint8_t {
  kWorkingSet,   // Theorems 1 to 3: the memory of a single run.
  kOrderCut,     // Theorem 4, if nothing may run twice.
  kMoments,      // Theorem 6: the program over moments has no solution.
  kFreeMoments,  // The same program, which also chooses the order.
};

struct PeakBound {
  Bytes bytes;
  PeakProof proof = PeakProof::kWorkingSet;
  BoundScope scope = BoundScope::kAnyOrder;

  bool operator==(const PeakBound&) const = default;
};

struct Certificate {
  // Scope of the overhead's bound, PlanFigures::lower_bound_cost.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;
  Cost gap;  // The plan's overhead beyond the bound.
  PeakBound peak;
  Bytes peak_gap;  // The plan's peak beyond the peak bound.

  bool operator==(const Certificate&) const = default;
};

// Names in plan files: "own-order", "plan-order", "any-order".
std::string_view NameOf(BoundScope scope);
std::string_view NameOf(OverheadProof proof);  // "run-once", "moments", "free-moments", ...
std::string_view NameOf(PeakProof proof);      // "working-set", "order-cut", ...

// Describes the scope: "in its order of operations".
std::string_view DescriptionOf(BoundScope scope);

}  // namespace ckplan
