// A JointGraph as a file. schemas/joint.schema.json describes its two forms, and
// docs/joint-graphs.md explains them.
//
//   full      {"kind": "joint", "values": [...], "ops": [...], "results": [...]}: all data of a
//             JointGraph; WriteJointGraphJson writes it
//   minimal   {"ops": [{"name", "time", "bytes", "reads": [op, ...]}]}: one value per operation;
//             reads are positions in the list; the last operation makes the result, unless
//             "results" names others
//
// The order of the operations in the list is the graph's own order.
//
// Guarantees ReadJointGraphJson(WriteJointGraphJson(g)) == g for UTF-8 names, and the same bytes
// for the same graph everywhere. Reading ignores unknown keys. Ids in the file are file_id in the
// graph: any distinct integers from 0 to 2^63 - 1; in the minimal form, positions in the list.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "lib/base/result.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

std::string WriteJointGraphJson(const JointGraph& graph);

// `where` names the text in messages, e.g. the file. kInvalidInput lists up to ten faults with
// their places: `g.json: /ops/3/reads/0: no value has the id 17`.
Result<JointGraph> ReadJointGraphJson(std::string_view text, const std::string& where);

// Reads a graph of either kind. The text is a joint graph if its "kind" says so, or if it has "ops"
// and no "nodes"; otherwise ReadGraphJson reads it.
using AnyGraph = std::variant<TensorGraph, JointGraph>;
Result<AnyGraph> ReadAnyGraphJson(std::string_view text, const std::string& where);

}  // namespace ckplan
