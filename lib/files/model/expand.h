// Flattens the file's nested graph into Model::Impl: expands functions and constant branches,
// infers types and folds small values, in one pass in the order of the file.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/follow_batch.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// The order in which the nodes of a graph can run. ONNX requires files to list nodes in such an
// order, but tools that merge or edit models often don't.
struct NodeOrder {
  std::vector<int> nodes;   // Indices into the list of nodes.
  bool is_changed = false;  // Differs from the list's order.
  // The last of `nodes`, which can't run because they depend on each other.
  std::vector<int> in_cycle;
};

// Returns the list's own order if it works.
NodeOrder OrderOf(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

// Fills values, operations, graph_inputs and graph_outputs of `model` from its proto. An error
// lists all faults of one kind: kInvalidInput for a graph that contradicts itself or unknown
// shapes, kUnsupported for control flow and operators on sequences. With a `follower`, constants
// are adapted to its batch, or kUnsupported is returned if they can't be.
Result<Done> ExpandGraph(Model::Impl& model, const BoundDims& bound, const std::string& file,
                         BatchFollower* follower = nullptr);

// Computes how large a model becomes when its functions are expanded, before expanding them.
//
// Functions that call each other twice, thirty levels deep, are two kilobytes of file and 10^9
// operations. Each function is counted once, so the cost is linear in the size of the file.

// Fails with kUnsupported if calls expand to more operations or longer names than fit in memory, or
// are nested too deeply, as in a function that calls itself.
Result<Done> CheckExpansion(const onnx::ModelProto& model, const ModelFunctions& functions,
                            const std::string& file);

}  // namespace ckplan
