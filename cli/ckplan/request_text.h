// What commands say of a model that was read, and the parts of a request that tables show besides
// its model, sizes and algorithm: the patterns of its constraints, how gradients are counted, and
// which of several devices the figures are for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// The request must be for a stage of a pipeline.
std::string StageText(const PlanRequest& request);     // "stage 4/1, 8 micro-batches (1f1b)"
std::string InFlightText(const PlanRequest& request);  // "3 of 8 micro-batches (1f1b)"

// Returns the warnings from reading a model, and one if its batch could be another one.
std::vector<std::string> WarningsOf(const Source& source);
// Prints these warnings.
void WarnOf(const Source& source, const Screen& screen);

// Returns the sizes of the model as headings show them: "N=64", "x=2,3", "batch=8".
std::vector<std::string> ModelTexts(const PlanRequest& request);
// Returns ", master weights, gradients arriving, each device of zero2:8, stage 4/1, 8 micro-batches
// (1f1b)". Empty for one device that has everything, with gradients among the constants.
std::string CountingText(const PlanRequest& request);

// The sizes of dimensions as one cell, so that tables of different models have the same columns:
// "N=8;T=128".
std::string DimsCell(const DimSizes& dims);

// Name and value of each of these columns in a CSV table; none if the request uses none of them.
std::vector<std::pair<std::string, std::string>> RequestCells(const PlanRequest& request);

}  // namespace ckplan
