// graph.json: a TensorGraph as a file, for graphs that come from elsewhere and for those who want
// to judge a plan themselves. schemas/graph.schema.json describes both of its forms.
//
//   full      tensors and nodes with everything that a TensorGraph holds; what WriteGraphJson makes
//   minimal   {"nodes": [{"id", "bytes", "time"}], "edges": [[from, to]]}, as in the papers: one
//             output per node, with the node's id; no inputs; backward reads what forward reads and
//             its output, unless "backward_reads" says otherwise, and costs what forward costs,
//             unless "backward_time" says otherwise; the outputs are the nodes that none follows
//
// Guarantees ReadGraphJson(WriteGraphJson(g)) == g where names are UTF-8, and the same bytes for
// the same graph everywhere. Reading ignores keys that it does not know. Ids in the file are
// file_id in the graph: any distinct integers from 0 to 2^63 - 1.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

class JsonDocument;

std::string WriteGraphJson(const TensorGraph& graph);

// `where` names the text in messages, e.g. the file. kInvalidInput lists all faults (at most ten),
// each with its place: `g.json: /nodes/3/inputs/0: no tensor has the id 17`.
Result<TensorGraph> ReadGraphJson(std::string_view text, const std::string& where);

// The same of a text that has been parsed.
Result<TensorGraph> ReadGraph(const JsonDocument& document);

}  // namespace ckplan
