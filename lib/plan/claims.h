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

void CompareConstants(const ConstantMemory& derived, const Plan& plan,
                      std::vector<std::string>* faults);

// A bound is no more than what the plan needs, and all of it where that is proven to be the least.
void CheckLowerBound(const PlanFigures& figures, Cost overhead, Cost least_possible,
                     std::vector<std::string>* faults);

// What the request asks for, as far as the plan shows it; `peak` as it was replayed.
void CompareRequest(const Plan& plan, Bytes peak, std::vector<std::string>* faults);

// `name_of` names a buffer for people: `the workspace of "conv"`.
void ComparePeak(const Plan& plan, int32_t step, const std::vector<LiveBuffer>& live,
                 const std::function<std::string(const LiveBuffer&)>& name_of,
                 std::vector<std::string>* faults);

// What a row repeats of its node: the field in which `claimed` differs, or "".
std::string_view DifferenceOf(const NodeLabel& claimed, const NodeLabel& derived);

}  // namespace ckplan
