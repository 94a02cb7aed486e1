// Graphs as the papers' authors had them: the models of testdata with what their frameworks of the
// time did otherwise taken back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/model.h"

namespace ckplan {

// A model of the folder, at a batch size; `side` is another width and height of the input, 0 for
// the model's own. Costs are the papers': 10 for a convolution, 1 otherwise.
Result<TensorGraph> LoadPaperModel(const std::string& models, const std::string& name,
                                   int64_t batch, Autograd autograd, int64_t side = 0);

// Statistics are no tensors; a pooling reads its input and its output to go backward, as cuDNN
// does, and needs no indices.
TensorGraph WithoutStatistics(const TensorGraph& graph);

// Nodes of one activation input and one output, for which `is_removed` holds, hand their input on.
TensorGraph WithoutNodes(const TensorGraph& graph,
                         const std::function<bool(const Node&)>& is_removed);

// A pooling whose output is as large as its input; in VGG and AlexNet an adaptive one, which does
// nothing at 224 x 224.
bool IsIdlePooling(const TensorGraph& graph, const Node& node);

// A concatenation of all that an earlier one holds, and of one more, reads that one instead:
// cat(cat(a, b), c) for cat(a, b, c), as DenseNets were once written.
TensorGraph WithChainedConcatenations(const TensorGraph& graph);

// Every activation and input `times` as large: a larger batch of a model with a fixed one.
TensorGraph WithBatch(const TensorGraph& graph, int64_t times);

}  // namespace ckplan
