// Chen et al. 2016: the time of Fig. 7 under the cost model, and the figures of Fig. 5 to 7 that
// only a GPU can measure.
#pragma once

#include <string>

#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"

namespace ckplan {

Result<FigureTable> ChenTimeTable(const std::string& models);
FigureTable ChenMeasuredTable();

}  // namespace ckplan
