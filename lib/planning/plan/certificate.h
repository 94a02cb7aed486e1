// The lower bounds that are proven for a plan by the algorithm `best`, on the overhead and on the
// peak of any plan. docs/bounds.md has the theorems with their proofs.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/units.h"

namespace ckplan {

// The plans that a bound holds for. All have the operations of one graph, and sums of gradients
// have one order.
enum class BoundScope : uint8_t {
  kOwnOrder,   // Plans whose first runs are in the graph's own order.
  kPlanOrder,  // Plans whose first runs are in the plan's order, which differs from the graph's.
  kAnyOrder,
};

// The proof that no plan has less overhead.
enum class OverheadProof : uint8_t {
  kRunOnce,      // Every operation that results need must run once.
  kConstraints,  // Theorem 8: a value that must be recomputed and is read backward is made twice.
  kOrderCut,     // Theorem 4: nothing fits without recomputation, so something runs twice.
  kOneCut,       // Theorem 5: one cut with a multiplier.
  kMoments,      // Theorem 6: the program over moments.
  kFreeMoments,  // The same program, where it also chooses the order.
};

// The proof that no plan has a lower peak.
enum class PeakProof : uint8_t {
  kWorkingSet,   // Theorems 1 to 3: the memory that a single run needs.
  kOrderCut,     // Theorem 4, where nothing may run twice.
  kMoments,      // Theorem 6: the program over moments has no solution.
  kFreeMoments,  // It also has no solution if it may choose the order.
};

struct PeakBound {
  Bytes bytes;
  PeakProof proof = PeakProof::kWorkingSet;
  BoundScope scope = BoundScope::kAnyOrder;

  bool operator==(const PeakBound&) const = default;
};

struct Certificate {
  // The scope of the bound on the overhead, which is PlanFigures::lower_bound_cost.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;
  Cost gap;  // The plan's overhead beyond the bound.
  PeakBound peak;
  Bytes peak_gap;  // The plan's peak beyond that bound.

  bool operator==(const Certificate&) const = default;
};

// The names in plan files: "own-order", "plan-order", "any-order".
std::string_view NameOf(BoundScope scope);
std::string_view NameOf(OverheadProof proof);  // "run-once", "moments", "free-moments", ...
std::string_view NameOf(PeakProof proof);      // "working-set", "order-cut", ...

// The scope as a phrase: "in its own order of operations".
std::string_view DescriptionOf(BoundScope scope);

}  // namespace ckplan
