// Writes the results of several algorithms, and comparisons of two plans, as JSON:
// schemas/compare.schema.json and schemas/diff.schema.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/diff_summary.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

// The result of one algorithm: a plan, or the reason why it failed.
struct ComparedRow {
  std::string algorithm;
  std::string guarantee;        // For example "heuristic".
  std::optional<Bytes> budget;  // Empty without a budget, or if the smallest one was not found.
  std::optional<Plan> plan;
  std::string failure;              // Why the algorithm found no plan; empty if it did.
  std::optional<Bytes> min_budget;  // If no plan fits: the smallest budget that has a plan.
  std::string budget_text = {};     // The budget as the user typed it: "60%".
};

struct ComparisonHead {
  ModelIdentity model;
  PlanRequest request;  // The settings that all rows share.
  Bytes baseline_peak;  // The keep-all peak in the model's own order.
  // The budget's field, such as "added_time", if the rows have different budgets; otherwise empty.
  std::string budget_field = {};
};

// One of several models, or one of several sizes of a model.
struct ComparedModel {
  ComparisonHead head;
  std::vector<ComparedRow> rows;
  std::string failure;  // Why the model failed to load. If set, `rows` is empty.
};

// Omits solve times, so that the same input gives the same bytes.
std::string WriteCompareJson(const ComparisonHead& head, const std::vector<ComparedRow>& rows);
// Writes an array of these objects.
std::string WriteCompareJson(const std::vector<ComparedModel>& models);

// Writes two plans side by side as JSON: schemas/diff.schema.json.

// How a change is shown: as a sign, which grep can find, and a word.
struct ChangeWords {
  std::string_view sign;  // One of "+", "-" and "~".
  std::string_view verb;  // For example "keep", "recompute", "new" or "gone".
};
ChangeWords WordsOf(const NodeChange& change);

// `diff` and `summary` must be those of DiffPlans(older, newer). Writes all changes in order.
std::string WriteDiffJson(const PlanDigest& older, const PlanDigest& newer, const PlanDiff& diff,
                          const DiffSummary& summary);

}  // namespace ckplan
