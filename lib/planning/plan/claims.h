// Compares a plan's claims with a replay of its steps (check_replay.h). Each fault names the field
// and both values.
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

// `optimized` are the trained parameters' gradients, no matter where they count.
void CompareConstants(const ConstantMemory& derived, const Optimized& optimized, const Plan& plan,
                      std::vector<std::string>* faults);

// Checks that the bound does not exceed the plan's overhead, and equals it if the plan claims to be
// optimal.
void CheckLowerBound(const PlanFigures& figures, Cost overhead, Cost least_possible,
                     std::vector<std::string>* faults);

// Checks the certificate, which exactly the plans by `best` have: it must agree with the figures,
// be consistent, and have a scope that includes the plan (`is_own_order`). `overhead` and `peak`
// are the replayed figures. The proof itself is not repeated.
void CheckCertificate(const Plan& plan, Cost overhead, Cost least_possible, Bytes peak,
                      bool is_own_order, std::vector<std::string>* faults);

// Checks that the curve, if any, is monotone and that the plan is the point that is chosen without
// a budget (added_time.h). `step` is the cost of a step without recomputation.
void CheckCurve(const Plan& plan, Cost step, std::vector<std::string>* faults);

// Checks that the plan fulfils its request, as far as the plan shows. `peak` is the replayed peak.
void CompareRequest(const Plan& plan, Bytes peak, std::vector<std::string>* faults);

// `name_of` returns a buffer's name for messages: `the workspace of "conv"`.
void ComparePeak(const Plan& plan, int32_t step, const std::vector<LiveBuffer>& live,
                 const std::function<std::string(const LiveBuffer&)>& name_of,
                 std::vector<std::string>* faults);

// Returns the field in which `claimed` differs from the node's row, or "".
std::string_view DifferenceOf(const NodeLabel& claimed, const NodeLabel& derived);

}  // namespace ckplan
