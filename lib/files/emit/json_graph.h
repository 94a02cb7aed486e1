// graph.json: a TensorGraph as a file, for graphs from other programs and for users who want to
// check a plan themselves. schemas/graph.schema.json describes its two forms.
//
//   full      all data of a TensorGraph; WriteGraphJson writes it
//   minimal   {"nodes": [{"id", "bytes", "time"}], "edges": [[from, to]]}, as in the papers: one
//             output per node, with the node's id; no inputs. By default, backward reads the node's
//             inputs and output ("backward_reads" overrides it) and costs as much as forward
//             ("backward_time" overrides it). Nodes without successors make the graph's outputs
//
// Guarantees ReadGraphJson(WriteGraphJson(g)) == g for UTF-8 names, and the same bytes for the same
// graph everywhere. Reading ignores unknown keys. Ids in the file are file_id in the graph: any
// distinct integers from 0 to 2^63 - 1.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Maps the ids in a file, any distinct integers from 0 to 2^63 - 1, to positions in the graph.
template <typename IdType>
class FileIds {
 public:
  // `kind` names the kind of thing in faults, such as "tensor".
  void Add(const JsonView& id, std::string_view kind, IdType position) {
    if (!id.is_file_id()) return;  // This fault was reported when the id was read.
    if (!positions_.emplace(id.Integer(), position).second) {
      id.Fault(fmt::format("another {} has the id {} too; ids must be unique", kind, id.Integer()));
    }
  }
  // Reports a fault and returns none if the id is unknown.
  IdType Find(const JsonView& id, std::string_view kind) const {
    const int64_t number = id.Integer();
    if (!id.is_file_id()) return IdType();
    const auto found = positions_.find(number);
    if (found != positions_.end()) return found->second;
    id.Fault(fmt::format("no {} has the id {}", kind, number));
    return IdType();
  }

 private:
  std::unordered_map<int64_t, IdType> positions_;
};

// Reports a fault and returns false unless the value is an array of two. `what` describes the two,
// such as "[output, input]".
inline bool ExpectPair(const JsonView& json, std::string_view what) {
  if (json.is_array() && json.size() == 2) return true;
  json.Fault(fmt::format("must be a pair {}", what));
  return false;
}

// The tensors that an optimizer keeps state for, in graph files:
// "optimized_tensors": [[elements, bytes of an element, how many], ...]
void WriteOptimizedTensors(const std::vector<OptimizedTensors>& tensors, JsonWriter* json);

// Reads them from the file's root object; returns nothing if the key is absent. Reports a fault if
// they need more bytes than `gradients`, an upper bound on the graph's gradients.
std::optional<std::vector<OptimizedTensors>> ReadOptimizedTensors(const JsonView& root,
                                                                  Bytes gradients);

class JsonDocument;

std::string WriteGraphJson(const TensorGraph& graph);

// `where` names the text in messages, e.g. the file. kInvalidInput lists all faults (at most ten),
// each with its place: `g.json: /nodes/3/inputs/0: no tensor has the id 17`.
Result<TensorGraph> ReadGraphJson(std::string_view text, const std::string& where);

Result<TensorGraph> ReadGraph(const JsonDocument& document);

}  // namespace ckplan
