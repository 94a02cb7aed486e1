// The batch of a model whose file has one size of it burnt in: the first dimension of its inputs,
// if that is a number, and the same one for all of them. Inputs without dimensions have none.
// And the model with another batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Returns the batch in the file; nothing if it is open, if inputs differ, or if there is none.
std::optional<int64_t> ConstantBatch(const BoundDims& bound);

// Returns the name of the batch where it is open: the first dimension of all inputs. Returns "" if
// it has no name, or if inputs differ.
std::string OpenBatchDim(const onnx::GraphProto& graph, const InputUses& uses);

// Gives the inputs whose batch is open and has no name the shape with `options->batch`, and takes
// the batch out of the options. Returns false, and changes nothing, if an input has another batch,
// or another dimension that has no size.
bool SetNamelessBatch(const onnx::GraphProto& graph, const InputUses& uses, LoadOptions* options);

// Returns the batch that overridden shapes ask for, if they differ from those of the file in it
// alone.
std::optional<int64_t> BatchOfShapes(const BoundDims& bound);

struct BatchVariants {
  BoundDims in_file;  // With the batch of the file.
  BoundDims wanted;
  int64_t size_in_file = 0;
};

// Returns the inputs with the batch of the file and with the wanted one, which are the same if the
// batch in the file is 0: it stands for an open one. kUsage: the batch is open
// (the remedy would give its size), inputs differ in it, or an overridden shape has another one.
Result<BatchVariants> WithBatch(const BoundDims& bound, int64_t wanted, const std::string& file);

// Reads a model with another batch than the one that is burnt into its file.

// Does what ExpandGraph does, with inputs that have this batch: see follow_batch.h. It reads the
// model first as it is. Errors are those of ExpandGraph and of WithBatch.
Result<Done> ExpandWithBatch(Model::Impl& model, const BoundDims& bound, int64_t batch,
                             const std::string& file);

// Removes what ExpandGraph has made, so that the graph can be read again.
void ClearGraph(Model::Impl* model);

}  // namespace ckplan
