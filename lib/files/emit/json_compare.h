// Writes several algorithms' plans for one model side by side as JSON: schemas/compare.schema.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/diff_summary.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// The answer of one algorithm: a plan, or the reason why there is none.
struct ComparedRow {
  std::string algorithm;
  std::string guarantee;        // For example "heuristic".
  std::optional<Bytes> budget;  // The limit of the peak; empty if there is none, or if a least
                                // budget was asked for but not found.
  std::optional<Plan> plan;
  std::string failure;              // The reason why there is no plan; empty if there is one.
  std::optional<Bytes> min_budget;  // If no plan fits: the smallest budget with a plan.
  std::string budget_text = {};     // The budget as it was typed: "60%".
};

struct ComparisonHead {
  ModelIdentity model;
  PlanRequest request;  // The part of the request that all rows share.
  Bytes baseline_peak;  // The peak of keeping everything in the model's own order.
  // The field of the budget ("added_time"), if rows are for different budgets; otherwise empty.
  std::string budget_field = {};
};

// One of several models, or a model with one of several sizes.
struct ComparedModel {
  ComparisonHead head;
  std::vector<ComparedRow> rows;
  std::string failure;  // The reason why the model was not read; then there are no rows.
};

// Solve times are left out, so that the same input gives the same bytes.
std::string WriteCompareJson(const ComparisonHead& head, const std::vector<ComparedRow>& rows);
// An array of such objects.
std::string WriteCompareJson(const std::vector<ComparedModel>& models);

// Writes two plans side by side as JSON: schemas/diff.schema.json.

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
