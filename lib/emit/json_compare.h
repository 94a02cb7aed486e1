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
  std::string guarantee;  // "heuristic"
  std::optional<Plan> plan;
  std::string failure;  // Where there is no plan.
};

// `baseline_peak` is keep-all's in the model's own order. No solve times: the same input gives the
// same bytes.
std::string WriteCompareJson(const ModelIdentity& model, Bytes baseline_peak,
                             const std::vector<ComparedRow>& rows);

}  // namespace ckplan
