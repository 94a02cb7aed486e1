// `ckbench graph NETWORK`: writes the graph of a network of Chen et al. 2016, section 5, for
// ckplan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

// Returns a network of Fig. 5 or 6: "resnet-DEPTH", at batch 32, or "lstm-STEPS", at batch 64.
Result<TensorGraph> ChenNetwork(std::string_view name);

Result<ExitCode> RunGraph(std::vector<std::string> arguments);

}  // namespace ckplan
