// Graphs as the papers' authors had them: the models of testdata, changed to what the frameworks of
// that time ran.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/model.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Loads a model of the folder at a batch size. `side` is another width and height of the input; 0
// keeps the model's own. Costs are by `cost` (lib/problem/cost/cost_model.h). The default is the
// papers' costs: 10 for a convolution, 1 otherwise.
Result<TensorGraph> LoadPaperModel(const std::string& models, const std::string& name,
                                   int64_t batch, Autograd autograd, int64_t side = 0,
                                   std::string_view cost = "paper");

// Returns the graph without tensors for statistics. Backward of a pooling reads its input and its
// output, as in cuDNN, instead of indices.
TensorGraph WithoutStatistics(const TensorGraph& graph);

// Returns the graph without nodes for which `is_removed` holds: their readers read the removed
// nodes' inputs instead. Removed nodes have one activation input and one output.
TensorGraph WithoutNodes(const TensorGraph& graph,
                         const std::function<bool(const Node&)>& is_removed);

// Returns whether the node is a pooling whose output is as large as its input. In VGG and AlexNet
// this is an adaptive pooling, which does nothing at 224 x 224.
bool IsIdlePooling(const TensorGraph& graph, const Node& node);

// Returns the graph with cat(cat(a, b), c) for cat(a, b, c), as DenseNets were once written: a
// concatenation that repeats all inputs of an earlier one reads the earlier result instead.
TensorGraph WithChainedConcatenations(const TensorGraph& graph);

// Returns the graph with all activations and inputs `batch` / `of` as large. This stands for
// another batch of a model whose batch is fixed.
TensorGraph WithBatch(const TensorGraph& graph, int64_t batch, int64_t of = 1);

}  // namespace ckplan
