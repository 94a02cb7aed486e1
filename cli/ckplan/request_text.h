// What tables say of a request beside its model, sizes and algorithm: which patterns plans obey,
// how gradients are counted, and which one of several devices their figures are of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/plan/request.h"

namespace ckplan {

// Of a request for a stage of a pipeline:
std::string StageText(const PlanRequest& request);     // "stage 4/1, 8 micro-batches (1f1b)"
std::string InFlightText(const PlanRequest& request);  // "3 of 8 micro-batches (1f1b)"

// ", gradients arriving, each device of zero2:8, stage 4/1, 8 micro-batches (1f1b)"; empty for one
// that has all, and gradients with the constants.
std::string CountingText(const PlanRequest& request);

// Name and value of each column that a table in CSV has of these; none where nothing of it is asked
// for.
std::vector<std::pair<std::string, std::string>> RequestCells(const PlanRequest& request);

}  // namespace ckplan
