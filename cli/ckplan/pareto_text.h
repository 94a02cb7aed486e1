// What `ckplan pareto` prints: curves of memory against time, of several algorithms, sizes and
// optimizers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/pareto.h"

namespace ckplan {

// A curve with everything that distinguishes it from others.
struct ParetoSeries {
  ModelIdentity model;
  PlanRequest request;  // The complete request, with the algorithm and the optimizer.
  Bytes constants;
  Bytes baseline_peak;
  std::optional<ParetoCurve> curve;
  std::string failure;  // The reason why there is no curve, or empty.
  ErrorCode failure_code = ErrorCode::kUnsupported;
};

std::string ParetoText(const std::vector<ParetoSeries>& series, const Terminal& terminal);
std::string ParetoMarkdown(const std::vector<ParetoSeries>& series);
// Returns a row for each point and one for each series without points, each with everything that
// distinguishes the series.
std::string ParetoCsv(const std::vector<ParetoSeries>& series);
std::string ParetoJson(const std::vector<ParetoSeries>& series);  // schemas/pareto.schema.json
std::string ParetoSvg(const std::vector<ParetoSeries>& series);

}  // namespace ckplan
