// Networks of any depth, built in code: those of Chen et al. 2016, section 5.
//
// As in MXNet at the time: an activation or an addition may be written in place, a normalisation
// may not; backward reads what `minimal` autograd does. Costs are 10 for convolutions and products,
// 1 otherwise. Parameters are no tensors and have no size here: the paper counts feature maps.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/graph/tensor_graph.h"

namespace ckplan {

// A pre-activation residual network of bottleneck units for ImageNet (He et al. 2016, "Identity
// mappings"): bn, relu, conv three times a unit. `units` of the four stages; its depth by the usual
// count is 3 times their sum, and 2.
TensorGraph ResidualNetwork(const std::vector<int64_t>& units, int64_t batch, int64_t side);

// Numbers of units in four stages, as equal as can be and the later ones larger, for a network of
// about `depth` layers.
std::vector<int64_t> StagesOfDepth(int64_t depth);

// Layers of LSTM cells unrolled over `steps` steps of time, each step with an input of its own, and
// a softmax over `classes` on top of each.
TensorGraph UnrollLstm(int64_t layers, int64_t hidden, int64_t inputs, int64_t classes,
                       int64_t batch, int64_t steps);

// The weights of that network, 4 bytes each, without biases: those of a cell, from its input and
// from its state to four gates, and those below the softmax.
Bytes LstmWeights(int64_t layers, int64_t hidden, int64_t inputs, int64_t classes);

}  // namespace ckplan
