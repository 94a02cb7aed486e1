// Text about a loaded model, and about a request beyond its model, sizes and algorithm: constraint
// patterns, how gradients are counted, which of several devices the figures are for, copies to the
// host, and the memory that training needs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The request must be for a stage of a pipeline.
std::string StageText(const PlanRequest& request);     // "stage 4/1, 8 micro-batches (1f1b)"
std::string InFlightText(const PlanRequest& request);  // "3 of 8 micro-batches (1f1b)"

// Returns the warnings from reading a model, plus one if its fixed batch could be changed.
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

// The part of a plan's summary about values moved to the host.

// Returns the lines, starting with the link; none for a plan without `offload`.
std::vector<std::string> OffloadTexts(const TrainingStep& step, const Plan& plan);

// "pcie4, 25 GB/s out and 20 GB/s in, half duplex, 10 us a copy"
std::string LinkText(const Link& link);

// Returns a line for the head of a table of plans with this request: the label, padded to
// `label_width`, the link and the limit on the host's memory. Returns nothing without a link.
std::string LinkLine(const PlanRequest& request, size_t label_width);

// The device memory that training needs, as text: docs/accounting.md.

// Returns a table with a row for each line and each sum. `title` heads the first column.
TextTable AccountingTable(const Accounting& accounting, const std::string& title);

// The answer in one line: "fits as it is, 1.20 GiB of 8.00 GiB to spare", or "fits with a plan, 3.2
// % slower, ...". `added_share` is what the plan adds to a step, as a share of it; none if keeping
// everything fits.
std::string FitLine(const Accounting& accounting, const Budget& memory,
                    std::optional<double> added_share);

// "8.00 GiB", or "24.00 GiB (rtx4090-24g)".
std::string MemoryText(const Budget& memory);

}  // namespace ckplan
