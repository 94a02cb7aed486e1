// Several algorithms' plans for one model, side by side, as JSON: schemas/compare.schema.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/plan/plan.h"

namespace ckplan {

// One algorithm's answer: a plan, or why there is none.
struct ComparedRow {
  std::string algorithm;
  std::string guarantee;        // "heuristic"
  std::optional<Bytes> budget;  // On the peak; nothing without one, and for a least that is none.
  std::optional<Plan> plan;
  std::string failure;              // Why there is no plan; empty if there is one.
  std::optional<Bytes> min_budget;  // Where no plan fits: the smallest budget with one.
};

struct ComparisonHead {
  ModelIdentity model;
  PlanRequest request;  // The part of the request that all rows share.
  Bytes baseline_peak;  // Keep-all's, in the model's own order.
};

// No solve times: the same input gives the same bytes.
std::string WriteCompareJson(const ComparisonHead& head, const std::vector<ComparedRow>& rows);

}  // namespace ckplan
