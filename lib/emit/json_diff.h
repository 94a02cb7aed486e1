// Two plans side by side, as JSON: schemas/diff.schema.json.
#pragma once

#include <string>
#include <string_view>

#include "lib/plan/diff.h"
#include "lib/plan/diff_summary.h"

namespace ckplan {

// How a change is shown: by a sign, which grep can look for, and a word.
struct ChangeWords {
  std::string_view sign;  // "+", "-", "~"
  std::string_view verb;  // "keep", "recompute", "new", "gone"
};
ChangeWords WordsOf(const NodeChange& change);

// `diff` and `summary` must be DiffPlans(older, newer). All changes, in its order.
std::string WriteDiffJson(const PlanDigest& older, const PlanDigest& newer, const PlanDiff& diff,
                          const DiffSummary& summary);

}  // namespace ckplan
