// Compares a plan's claims with a replay of its steps (check_replay.h).
// Faults are sentences that name the field and both values.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

template <typename T>
void CompareClaim(std::string_view what, T claimed, T replayed, std::vector<std::string>* faults) {
  if (claimed == replayed) return;
  faults->push_back(fmt::format("{}: the plan says {}, the replay finds {}", what, claimed.count(),
                                replayed.count()));
}

// `optimized` has the values that the optimizer keeps state for, wherever they are counted.
void CompareConstants(const ConstantMemory& derived, const Optimized& optimized, const Plan& plan,
                      std::vector<std::string>* faults);

// Checks that a bound is at most what the plan needs, and exactly that if the plan is proven
// optimal.
void CheckLowerBound(const PlanFigures& figures, Cost overhead, Cost least_possible,
                     std::vector<std::string>* faults);

// Checks the certificate, which all plans by `best` and no others have: whether it agrees with the
// figures, is consistent and, by `is_own_order`, has a scope that includes the plan. `overhead` and
// `peak` are the replayed figures. The proof itself is not repeated.
void CheckCertificate(const Plan& plan, Cost overhead, Cost least_possible, Bytes peak,
                      bool is_own_order, std::vector<std::string>* faults);

// Checks that the curve, if there is one, is monotone, and that the plan is the point on it that is
// chosen without a budget (added_time.h). `step` is the cost of a step without recomputation.
void CheckCurve(const Plan& plan, Cost step, std::vector<std::string>* faults);

// Checks that the plan fulfils its request, as far as the plan shows it; `peak` is the replayed
// figure.
void CompareRequest(const Plan& plan, Bytes peak, std::vector<std::string>* faults);

// `name_of` returns a buffer's name for messages: `the workspace of "conv"`.
void ComparePeak(const Plan& plan, int32_t step, const std::vector<LiveBuffer>& live,
                 const std::function<std::string(const LiveBuffer&)>& name_of,
                 std::vector<std::string>* faults);

// Returns the field of a row in which `claimed` differs from its node, or "".
std::string_view DifferenceOf(const NodeLabel& claimed, const NodeLabel& derived);

}  // namespace ckplan
