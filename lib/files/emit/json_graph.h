// graph.json: a TensorGraph as a file, for graphs from elsewhere and for users who want to check a
// plan themselves. schemas/graph.schema.json describes both of its forms.
//
//   full      tensors and nodes with everything that a TensorGraph holds; WriteGraphJson writes it
//   minimal   {"nodes": [{"id", "bytes", "time"}], "edges": [[from, to]]}, as in the papers: one
//             output per node, with the node's id; no inputs. By default, backward reads the node's
//             inputs and output ("backward_reads" overrides it) and costs what forward costs
//             ("backward_time" overrides it). The outputs are those of nodes without successors
//
// Guarantees ReadGraphJson(WriteGraphJson(g)) == g for UTF-8 names, and the same bytes for the same
// graph everywhere. Reading ignores unknown keys. Ids in the file are file_id in the graph: any
// distinct integers from 0 to 2^63 - 1.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

class JsonDocument;

std::string WriteGraphJson(const TensorGraph& graph);

// `where` names the text in messages, e.g. the file. kInvalidInput lists all faults (at most ten),
// each with its place: `g.json: /nodes/3/inputs/0: no tensor has the id 17`.
Result<TensorGraph> ReadGraphJson(std::string_view text, const std::string& where);

// Does the same with a text that is already parsed.
Result<TensorGraph> ReadGraph(const JsonDocument& document);

}  // namespace ckplan
