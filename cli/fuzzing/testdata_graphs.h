// Small graphs of testdata/graphs that fuzz targets plan, and for which they read plans. Each file
// is read once.
#pragma once

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

const TensorGraph& NetGraph();      // net.json
const TensorGraph& SkipsGraph();    // skips.json
const JointGraph& JointNetGraph();  // joint_net.json

}  // namespace ckplan
