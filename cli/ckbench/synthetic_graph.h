// Networks of any depth, built in code: the networks of Chen et al. 2016, section 5.
//
// As in MXNet at the time, an activation or an addition may be written in place, and a
// normalisation may not; backward reads the tensors that `minimal` autograd reads. Costs are 10 for
// convolutions and products, 1 otherwise. Parameters are not tensors here and have no size, because
// the paper counts feature maps.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Builds a pre-activation residual network of bottleneck units for ImageNet (He et al. 2016,
// "Identity mappings"): bn, relu, conv three times in each unit. `units` has the number of units in
// each of the four stages. By the usual count, the depth is 3 times the sum of `units`, plus 2.
TensorGraph ResidualNetwork(const std::vector<int64_t>& units, int64_t batch, int64_t side);

// Returns the numbers of units in four stages, as equal as possible and with the later stages
// larger, for a network of about `depth` layers.
std::vector<int64_t> StagesOfDepth(int64_t depth);

// Builds layers of LSTM cells unrolled over `steps` time steps. Each step has its own input, and a
// softmax over `classes` on top.
TensorGraph UnrollLstm(int64_t layers, int64_t hidden, int64_t inputs, int64_t classes,
                       int64_t batch, int64_t steps);

// Returns the bytes of that network's weights, 4 bytes each, without biases: for each cell the
// weights from its input and from its state to four gates, and the weights below the softmax.
Bytes LstmWeights(int64_t layers, int64_t hidden, int64_t inputs, int64_t classes);

}  // namespace ckplan
