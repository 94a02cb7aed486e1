// In which order an annotated model's nodes run: the rule of docs/onnx-markers.md, and the marker
// of plans that it does not describe.
//
//   rule     nodes forward by segment, and within it as in the file; the loss; the same backward in
//            reverse. Before a backward run all that it reads is made again that is to be, each
//            node after what it needs itself.
//   marker   "forward 0 1 2 loss backward 2 forward 1 backward 1 0": numbers of nodes in the file's
//            main graph, "4.0" and "4.1" for the operations of an expanded call; after "free", the
//            outputs that are released, as "1:o0", or "1:s" for a statistic.
//
// The rule is applied here to what the file says and to nothing else, so whoever reads the markers
// comes to the same steps. Cost: O(steps x reads).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/model/file_rows.h"
#include "lib/plan/plan.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// "i0" an input, "o0" an output, "s" the statistic that the node saves for its backward.
std::string TextOf(const ValuePlace& place);

// The value of the marker; nothing where the rule gives these steps. The schedule is of forward and
// backward steps, valid, and for `graph`, whose nodes the rows refer to.
std::optional<std::string> StepsMarker(const std::vector<FileRow>& rows,
                                       const IdVector<NodeId, NodeDecision>& decisions,
                                       const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
