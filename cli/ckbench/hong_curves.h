// Hong et al. 2024: the memory of every training phase (Fig. 5 and 7), and AlexNet with its
// poolings merged into convolutions (Fig. 8).
#pragma once

#include <string>

#include "cli/ckbench/hong_layers.h"
#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"
#include "lib/planning/algorithms/hong/layer_list.h"

namespace ckplan {

Result<FigureTable> HongPredictionTable(const std::string& models);  // Fig. 5
Result<FigureTable> HongComparisonTable(const std::string& models);  // Fig. 7
Result<FigureTable> HongPlainTable(const std::string& models);       // Fig. 8

// Returns the list with each layer at one of the ascending `positions` merged into the layer after
// it.
LayerList WithinNextLayer(const LayerList& list, const LayerPositions& positions);

}  // namespace ckplan
