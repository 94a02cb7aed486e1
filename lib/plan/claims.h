// What a plan claims, against what a replay of its steps finds: the part of the judgement that is
// the same for forward graphs (check.h) and for joint graphs (check_runs.h). Faults are sentences
// that name the field and both values.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

template <typename T>
void CompareClaim(std::string_view what, T claimed, T replayed, std::vector<std::string>* faults) {
  if (claimed == replayed) return;
  faults->push_back(fmt::format("{}: the plan says {}, the replay finds {}", what, claimed.count(),
                                replayed.count()));
}

// `optimized`: the bytes that the optimizer keeps state for, wherever they are counted.
void CompareConstants(const ConstantMemory& derived, Bytes optimized, const Plan& plan,
                      std::vector<std::string>* faults);

// A bound is no more than what the plan needs, and all of it where that is proven to be the least.
void CheckLowerBound(const PlanFigures& figures, Cost overhead, Cost least_possible,
                     std::vector<std::string>* faults);

// The certificate, which plans by `best` have and no others: that it fits the figures, itself and,
// by `is_own_order`, the plan. `overhead` and `peak` as they were replayed. What it proves is not
// proven again.
void CheckCertificate(const Plan& plan, Cost overhead, Cost least_possible, Bytes peak,
                      bool is_own_order, std::vector<std::string>* faults);

// The curve, if there is one: monotone, with the plan on it, as the point that plans for no budget
// are (added_time.h). `step` is the cost of a step without recomputation.
void CheckCurve(const Plan& plan, Cost step, std::vector<std::string>* faults);

// What the request asks for, as far as the plan shows it; `peak` as it was replayed.
void CompareRequest(const Plan& plan, Bytes peak, std::vector<std::string>* faults);

// `name_of` names a buffer for people: `the workspace of "conv"`.
void ComparePeak(const Plan& plan, int32_t step, const std::vector<LiveBuffer>& live,
                 const std::function<std::string(const LiveBuffer&)>& name_of,
                 std::vector<std::string>* faults);

// What a row repeats of its node: the field in which `claimed` differs, or "".
std::string_view DifferenceOf(const NodeLabel& claimed, const NodeLabel& derived);

}  // namespace ckplan
