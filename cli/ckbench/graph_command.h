// `ckbench graph NETWORK`: the graph of a network of Chen et al. 2016, section 5, for ckplan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

// The networks of Fig. 5 and 6: "resnet-DEPTH", at batch 32, and "lstm-STEPS", at batch 64.
Result<TensorGraph> ChenNetwork(std::string_view name);

Result<ExitCode> RunGraph(std::vector<std::string> arguments);

}  // namespace ckplan
