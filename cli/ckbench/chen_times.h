// Chen et al. 2016: the time of Fig. 7 by the cost model, and what only a GPU can fill in of Fig. 5
// to 7.
#pragma once

#include <string>

#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"

namespace ckplan {

Result<FigureTable> ChenTimeTable(const std::string& models);
FigureTable ChenMeasuredTable();

}  // namespace ckplan
