// Writes two plans side by side as JSON: schemas/diff.schema.json.
#pragma once

#include <string>
#include <string_view>

#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/diff_summary.h"

namespace ckplan {

// How a change is shown: by a sign, which grep can find, and a word.
struct ChangeWords {
  std::string_view sign;  // One of "+", "-" and "~".
  std::string_view verb;  // For example "keep", "recompute", "new" or "gone".
};
ChangeWords WordsOf(const NodeChange& change);

// `diff` and `summary` must be those of DiffPlans(older, newer). Writes all changes in their order.
std::string WriteDiffJson(const PlanDigest& older, const PlanDigest& newer, const PlanDiff& diff,
                          const DiffSummary& summary);

}  // namespace ckplan
