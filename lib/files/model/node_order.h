// The order in which the nodes of a graph can run. ONNX demands that files list them so, but tools
// that merge or edit models often don't.
#pragma once

#include <vector>

#include "onnx/onnx_pb.h"

namespace ckplan {

struct NodeOrder {
  std::vector<int> nodes;   // Indices into the list of nodes.
  bool is_changed = false;  // It isn't that of the list.
  // The last ones of `nodes`, which can't run: they need each other, or need such nodes.
  std::vector<int> in_cycle;
};

// Returns the list's own order if it works.
NodeOrder OrderOf(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace ckplan
