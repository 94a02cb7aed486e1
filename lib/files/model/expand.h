// Turns the file's nested graph into the flat one of Model::Impl: functions and constant branches
// are expanded, types inferred and small values folded, all in one pass in the order of the file.
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

// The order in which the nodes of a graph can run. ONNX demands that files list them so, but tools
// that merge or edit models often don't.
struct NodeOrder {
  std::vector<int> nodes;   // Indices into the list of nodes.
  bool is_changed = false;  // It isn't that of the list.
  // The last ones of `nodes`, which can't run: they need each other, or need such nodes.
  std::vector<int> in_cycle;
};

// Returns the list's own order if it works.
NodeOrder OrderOf(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

// Fills values, operations, graph_inputs and graph_outputs of `model` from its proto. An error
// lists all faults of one kind: kInvalidInput for a graph that contradicts itself and for shapes
// that stay unknown, kUnsupported for control flow and for operators on sequences. If there is a
// `follower`, constants follow the batch that it is for; kUnsupported: they cannot.
Result<Done> ExpandGraph(Model::Impl& model, const BoundDims& bound, const std::string& file,
                         BatchFollower* follower = nullptr);

// Computes how large a model becomes when its functions are expanded, before expanding them.
//
// Functions that call each other twice, thirty deep, are two kilobytes of file and 10^9 operations.
// Each function is counted once, so the cost is linear in the size of the file.

// kUnsupported: calls make more operations, or longer names, than fit into memory, or they are
// nested too deeply, as in a function that calls itself.
Result<Done> CheckExpansion(const onnx::ModelProto& model, const ModelFunctions& functions,
                            const std::string& file);

}  // namespace ckplan
