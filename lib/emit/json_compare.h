// Writes several algorithms' plans for one model side by side as JSON: schemas/compare.schema.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/plan/plan.h"

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
};

struct ComparisonHead {
  ModelIdentity model;
  PlanRequest request;  // The part of the request that all rows share.
  Bytes baseline_peak;  // The peak of keeping everything in the model's own order.
};

// Solve times are left out, so that the same input gives the same bytes.
std::string WriteCompareJson(const ComparisonHead& head, const std::vector<ComparedRow>& rows);

}  // namespace ckplan
