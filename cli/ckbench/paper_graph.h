// Graphs as the papers' authors had them: the models of testdata, changed to what the frameworks of
// that time did.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/model.h"

namespace ckplan {

// A model of the folder, at a batch size; `side` is another width and height of the input, 0 for
// the model's own. Costs are by `cost` (lib/cost/cost_model.h), the papers' unless given: 10 for a
// convolution, 1 otherwise.
Result<TensorGraph> LoadPaperModel(const std::string& models, const std::string& name,
                                   int64_t batch, Autograd autograd, int64_t side = 0,
                                   std::string_view cost = "paper");

// The graph without tensors for statistics; backward of a pooling reads its input and its output,
// as cuDNN does, instead of indices.
TensorGraph WithoutStatistics(const TensorGraph& graph);

// The graph without nodes for which `is_removed` holds: their readers read their input instead.
// Removed nodes have one activation input and one output.
TensorGraph WithoutNodes(const TensorGraph& graph,
                         const std::function<bool(const Node&)>& is_removed);

// A pooling whose output is as large as its input; in VGG and AlexNet an adaptive one, which does
// nothing at 224 x 224.
bool IsIdlePooling(const TensorGraph& graph, const Node& node);

// The graph with cat(cat(a, b), c) for cat(a, b, c), as DenseNets were once written: a
// concatenation that repeats all inputs of an earlier one reads that one instead.
TensorGraph WithChainedConcatenations(const TensorGraph& graph);

// The graph with all activations and inputs `times` as large: a larger batch for a model whose
// batch is fixed.
TensorGraph WithBatch(const TensorGraph& graph, int64_t times);

}  // namespace ckplan
