// The fixed batch size of a model: the first dimension of its inputs, if it is the same number for
// all. Inputs without dimensions don't count. Also reads the model with a different batch size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Returns the file's batch size; nullopt if it is open, differs between inputs, or does not exist.
std::optional<int64_t> ConstantBatch(const BoundDims& bound);

// Returns the name of an open batch: the first dimension of all inputs. Returns "" if it has no
// name or differs between inputs.
std::string OpenBatchDim(const onnx::GraphProto& graph, const InputUses& uses);

// Applies `options->batch` to the shapes of inputs whose batch is open and unnamed, and clears it
// in the options. Returns false without changes if an input has a different batch or another open
// dimension.
bool SetNamelessBatch(const onnx::GraphProto& graph, const InputUses& uses, LoadOptions* options);

// Returns the batch size of the overridden shapes, if they differ from the file's only in the
// batch.
std::optional<int64_t> BatchOfShapes(const BoundDims& bound);

struct BatchVariants {
  BoundDims in_file;  // With the file's batch.
  BoundDims wanted;
  int64_t size_in_file = 0;
};

// Returns the inputs with the file's batch and with the wanted one. Both are the same if the file's
// batch is 0, which means open. Fails with kUsage if the batch is open (the remedy gives its size),
// if it differs between inputs, or if an overridden shape has a different one.
Result<BatchVariants> WithBatch(const BoundDims& bound, int64_t wanted, const std::string& file);

// Reads a model with a batch size other than the file's.

// Like ExpandGraph, but with inputs of this batch (follow_batch.h). Reads the unchanged model
// first. Fails like ExpandGraph and WithBatch.
Result<Done> ExpandWithBatch(Model::Impl& model, const BoundDims& bound, int64_t batch,
                             const std::string& file);

// Clears the results of ExpandGraph, so that the graph can be read again.
void ClearGraph(Model::Impl* model);

}  // namespace ckplan
