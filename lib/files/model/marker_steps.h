// The order in which an annotated model's nodes run: the rule of docs/onnx-markers.md, and the
// marker for plans that the rule does not describe.
//
//   rule     nodes forward by segment, and within a segment in the order of the file; the loss; the
//            same backward in reverse. Before a backward run, all values that it reads and that
//            must be remade are remade, each node after the nodes that it needs itself.
//   marker   "forward 0 1 2 loss backward 2 forward 1 backward 1 0": numbers of nodes in the file's
//            main graph, "4.0" and "4.1" for the operations of an expanded call; after "free", the
//            outputs that are freed, as "1:o0", or "1:s" for a statistic; after "out", "drop" and
//            "in", what is copied to the host or back, where "1:g0" is the gradient of "1:o0".
//
// The rule uses only what the file says, so every reader of the markers derives the same steps.
// Cost: O(steps x reads).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/model/file_rows.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns "i0" for an input, "o0" for an output, "s" for the statistic that the node saves for its
// backward.
std::string TextOf(const ValuePlace& place);

// Returns the value of the marker, or nothing if the rule gives these steps. The schedule consists
// of forward and backward steps, maybe with copies (lib/problem/schedule/transfers.h), and
// is valid for `graph`, to whose nodes the rows refer.
std::optional<std::string> StepsMarker(const std::vector<FileRow>& rows,
                                       const IdVector<NodeId, NodeDecision>& decisions,
                                       const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
