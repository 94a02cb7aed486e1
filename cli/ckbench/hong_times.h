// Hong et al. 2024, Table 3: the time of a training step.
#pragma once

#include <string>

#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"

namespace ckplan {

// Computes the table by the cost model of the paper's device.
Result<FigureTable> HongModelledTimeTable(const std::string& models);
// Returns the rows that only a GPU can fill in.
FigureTable HongMeasuredTimeTable();

}  // namespace ckplan
