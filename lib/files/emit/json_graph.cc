#include "lib/files/emit/json_graph.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/units.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

constexpr const char* kOptimizedKey = "optimized_tensors";

// Returns nothing if it reported a fault.
std::optional<OptimizedTensors> ReadOptimizedRow(const JsonView& json) {
  if (!json.is_array() || json.size() != 3) {
    json.Fault("must be a triple [elements, bytes per element, tensors]");
    return std::nullopt;
  }
  const OptimizedTensors row{json.at(0).Integer(), json.at(1).Integer(), json.at(2).Integer()};
  if (row.elements >= 1 && row.count >= 1 && row.element_bytes >= 1 &&
      row.element_bytes <= kMaxElementBytes) {
    return row;
  }
  json.Fault(fmt::format("all three must be at least 1, and the bytes per element at most {}",
                         kMaxElementBytes));
  return std::nullopt;
}

}  // namespace

void WriteOptimizedTensors(const std::vector<OptimizedTensors>& tensors, JsonWriter* json) {
  json->Key(kOptimizedKey).BeginArray(JsonLayout::kWrapped);
  for (const OptimizedTensors& row : tensors) {
    json->BeginArray(JsonLayout::kInline);
    json->Integer(row.elements).Integer(row.element_bytes).Integer(row.count).End();
  }
  json->End();
}

std::optional<std::vector<OptimizedTensors>> ReadOptimizedTensors(const JsonView& root,
                                                                  Bytes gradients) {
  if (!root.has(kOptimizedKey)) return std::nullopt;
  std::vector<OptimizedTensors> tensors;
  const JsonView list = root[kOptimizedKey];
  std::optional<int64_t> total = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<OptimizedTensors> row = ReadOptimizedRow(list.at(i));
    if (!row) return std::nullopt;
    const auto each = CheckedMul(row->elements, row->element_bytes);
    const auto all = each ? CheckedMul(*each, row->count) : std::nullopt;
    total = total && all ? CheckedAdd(*total, *all) : std::nullopt;
    tensors.push_back(*row);
  }
  if (!total || *total > gradients.count()) {
    list.Fault(fmt::format("these tensors need more than the {} bytes of the graph's gradients",
                           gradients.count()));
    return std::nullopt;
  }
  return Merged(std::move(tensors));
}

namespace {

constexpr std::string_view kKindNames[] = {"input", "activation", "statistic"};

// ---- Writing ----

class GraphWriter {
 public:
  explicit GraphWriter(const TensorGraph& graph) : graph_(graph) {}

  std::string Write() && {
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("schema_version").Text(kSchemaVersion);
    json_.Key("name").Text(graph_.name());
    json_.Key("parameter_bytes").Amount(graph_.constants().parameters);
    if (!graph_.optimized().is_unknown) {
      json_.Key("parameter_gradient_bytes").Amount(graph_.constants().parameter_gradients);
    }
    WriteSharding();
    json_.Key("tensors").BeginArray(JsonLayout::kLines);
    for (const Tensor& tensor : graph_.tensors()) WriteTensor(tensor);
    json_.End();
    json_.Key("nodes").BeginArray(JsonLayout::kLines);
    for (const Node& node : graph_.nodes()) WriteNode(node);
    json_.End();
    WriteIds("outputs", graph_.outputs(), JsonLayout::kWrapped);
    json_.End();
    return std::move(json_).Finish();
  }

 private:
  // If the parameters are sharded, writes the bytes for which a device has optimizer state, and the
  // bytes of unsharded parameters and gradients that it holds at a time.
  void WriteSharding() {
    if (graph_.optimized().bytes != graph_.constants().parameter_gradients) {
      json_.Key("optimized_bytes").Amount(graph_.optimized().bytes);
    }
    if (!graph_.optimized().tensors.empty()) {
      WriteOptimizedTensors(graph_.optimized().tensors, &json_);
    }
    if (graph_.constants().unsharded > Bytes(0)) {
      json_.Key("unsharded_bytes").Amount(graph_.constants().unsharded);
    }
  }

  void WriteTensor(const Tensor& tensor) {
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("id").Integer(tensor.file_id);
    json_.Key("name").Text(tensor.name);
    json_.Key("bytes").Amount(tensor.bytes);
    json_.Key("kind").Text(kKindNames[static_cast<size_t>(tensor.kind)]);
    json_.Key("requires_grad").Boolean(tensor.requires_grad);
    json_.End();
  }

  void WriteNode(const Node& node) {
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("id").Integer(node.file_id);
    json_.Key("name").Text(node.name);
    json_.Key("op").Text(node.op);
    WriteIds("inputs", node.inputs);
    WriteIds("outputs", node.outputs);
    WriteIds("backward_reads", node.backward_reads);
    json_.Key("forward_cost").Amount(node.forward_cost);
    json_.Key("backward_cost").Amount(node.backward_cost);
    json_.Key("forward_workspace_bytes").Amount(node.forward_workspace);
    json_.Key("backward_workspace_bytes").Amount(node.backward_workspace);
    json_.Key("in_place").BeginArray(JsonLayout::kInline);
    for (const auto& [output, input] : node.in_place) {
      json_.BeginArray(JsonLayout::kInline);
      json_.Integer(FileId(output)).Integer(FileId(input)).End();
    }
    json_.End();
    WriteIds("gradient_passthrough", node.gradient_passthrough);
    json_.Key("random").Boolean(node.is_random);
    json_.End();
  }

  void WriteIds(std::string_view key, const std::vector<TensorId>& ids,
                JsonLayout layout = JsonLayout::kInline) {
    json_.Key(key).BeginArray(layout);
    for (const TensorId id : ids) json_.Integer(FileId(id));
    json_.End();
  }

  int64_t FileId(TensorId id) const { return graph_.tensor(id).file_id; }

  const TensorGraph& graph_;
  JsonWriter json_;
};

// ---- Reading ----

class GraphReader {
 public:
  explicit GraphReader(const JsonDocument& document) : root_(document.root()) {}

  // The caller must discard the result if the document's Status() is an error.
  TensorGraphParts Read() && {
    CheckSchemaVersion(root_, /*allow_missing=*/true);
    parts_.name = root_.TextOr("name", "graph");
    if (root_.has("tensors")) {
      ReadFullForm();
    } else {
      ReadMinimalForm();
    }
    return std::move(parts_);
  }

 private:
  void ReadFullForm() {
    parts_.parameters = Bytes(root_.IntegerOr("parameter_bytes", 0));
    parts_.parameter_gradients = Bytes(root_.IntegerOr("parameter_gradient_bytes", 0));
    if (root_.has("optimized_bytes")) parts_.optimized = Bytes(root_["optimized_bytes"].Integer());
    parts_.is_training_unknown = !root_.has("parameter_gradient_bytes") && !parts_.optimized;
    const Bytes gradients = parts_.optimized.value_or(parts_.parameter_gradients);
    parts_.optimized_tensors =
        ReadOptimizedTensors(root_, gradients).value_or(std::vector<OptimizedTensors>());
    parts_.unsharded = Bytes(root_.IntegerOr("unsharded_bytes", 0));
    const JsonView tensors = root_["tensors"];
    for (size_t i = 0; i < tensors.size(); ++i) ReadTensor(tensors.at(i));
    const JsonView nodes = root_["nodes"];
    for (size_t i = 0; i < nodes.size(); ++i) ReadNode(nodes.at(i));
    ExpectNodes(nodes);
    const JsonView outputs = root_["outputs"];
    parts_.outputs = ReadTensorIds(outputs);
    std::set<TensorId> seen;
    for (size_t i = 0; i < parts_.outputs.size(); ++i) {
      if (!seen.insert(parts_.outputs[i]).second) {
        outputs.at(i).Fault("this tensor is already an output of the graph");
      }
    }
  }

  void ReadTensor(const JsonView& json) {
    PollStop();
    Tensor tensor;
    const JsonView id = json["id"];
    tensor.file_id = id.Integer();
    tensor.name = json.has("name") ? json["name"].Text() : fmt::format("t{}", tensor.file_id);
    tensor.bytes = Bytes(json["bytes"].Integer());
    tensor.kind = static_cast<TensorKind>(
        json["kind"].Choice({std::begin(kKindNames), std::end(kKindNames)}));
    tensor.requires_grad = json.BooleanOr("requires_grad", tensor.kind != TensorKind::kInput);
    tensor_ids_.Add(id, "tensor", parts_.tensors.push_back(std::move(tensor)));
  }

  void ReadNode(const JsonView& json) {
    PollStop();
    const JsonView id = json["id"];
    Node node = ReadNodeIdentity(json, id);
    node.inputs = ReadTensorIds(json["inputs"]);
    node.outputs = ReadTensorIds(json["outputs"]);
    node.backward_reads = ReadTensorIds(json["backward_reads"]);
    node.forward_cost = Cost(json["forward_cost"].Integer());
    node.backward_cost = Cost(json.IntegerOr("backward_cost", node.forward_cost.count()));
    node.forward_workspace = Bytes(json.IntegerOr("forward_workspace_bytes", 0));
    node.backward_workspace = Bytes(json.IntegerOr("backward_workspace_bytes", 0));
    if (json.has("in_place")) node.in_place = ReadPairs(json["in_place"]);
    if (json.has("gradient_passthrough")) {
      node.gradient_passthrough = ReadTensorIds(json["gradient_passthrough"]);
    }
    node.is_random = json.BooleanOr("random", false);
    node_ids_.Add(id, "node", parts_.nodes.push_back(std::move(node)));
  }

  static Node ReadNodeIdentity(const JsonView& json, const JsonView& id) {
    Node node;
    node.file_id = id.Integer();
    node.name = json.has("name") ? json["name"].Text() : fmt::format("n{}", node.file_id);
    node.op = json.TextOr("op", "");
    return node;
  }

  std::vector<TensorId> ReadTensorIds(const JsonView& list) {
    std::vector<TensorId> ids;
    for (size_t i = 0; i < list.size(); ++i) {
      ids.push_back(tensor_ids_.Find(list.at(i), "tensor"));
    }
    return ids;
  }

  std::vector<InPlacePair> ReadPairs(const JsonView& list) {
    std::vector<InPlacePair> pairs;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!ExpectPair(list.at(i), "[output, input]")) continue;
      pairs.push_back({tensor_ids_.Find(list.at(i).at(0), "tensor"),
                       tensor_ids_.Find(list.at(i).at(1), "tensor")});
    }
    return pairs;
  }

  void ReadMinimalForm() {
    parts_.is_training_unknown = true;
    const JsonView nodes = root_["nodes"];
    for (size_t i = 0; i < nodes.size(); ++i) ReadVertex(nodes.at(i));
    ExpectNodes(nodes);
    const std::vector<bool> has_successor = ReadEdges(root_["edges"]);
    for (const NodeId id : parts_.nodes.ids()) {
      const TensorId own(id.index());
      const JsonView json = nodes.at(static_cast<size_t>(id.index()));
      Node& node = parts_.nodes[id];
      if (json.has("backward_reads")) {
        node.backward_reads = ReadTensorIds(json["backward_reads"]);
      } else {
        node.backward_reads = node.inputs;
        node.backward_reads.push_back(own);
      }
      if (!has_successor[static_cast<size_t>(id.index())]) parts_.outputs.push_back(own);
    }
  }

  void ReadVertex(const JsonView& json) {
    const JsonView id = json["id"];
    Node node = ReadNodeIdentity(json, id);
    const TensorId own(parts_.nodes.size());
    node.outputs = {own};
    node.forward_cost = Cost(json["time"].Integer());
    node.backward_cost = Cost(json.IntegerOr("backward_time", node.forward_cost.count()));
    Tensor tensor;
    tensor.file_id = node.file_id;
    tensor.name = node.name;
    tensor.bytes = Bytes(json["bytes"].Integer());
    parts_.tensors.push_back(std::move(tensor));
    tensor_ids_.Add(id, "node", own);
    parts_.nodes.push_back(std::move(node));
  }

  // Returns a flag per node: whether an edge leaves it.
  std::vector<bool> ReadEdges(const JsonView& edges) {
    std::vector<bool> has_successor(parts_.nodes.size());
    for (size_t i = 0; i < edges.size(); ++i) {
      if (!ExpectPair(edges.at(i), "[from, to]")) continue;
      const TensorId from = tensor_ids_.Find(edges.at(i).at(0), "node");
      const TensorId to = tensor_ids_.Find(edges.at(i).at(1), "node");
      if (from.is_none() || to.is_none()) continue;
      parts_.nodes[NodeId(to.index())].inputs.push_back(from);
      has_successor[static_cast<size_t>(from.index())] = true;
    }
    return has_successor;
  }

  void ExpectNodes(const JsonView& nodes) {
    if (nodes.is_array() && nodes.size() == 0) nodes.Fault("a graph must have at least one node");
  }

  JsonView root_;
  TensorGraphParts parts_;
  FileIds<TensorId> tensor_ids_;
  FileIds<NodeId> node_ids_;
};

}  // namespace

std::string WriteGraphJson(const TensorGraph& graph) { return GraphWriter(graph).Write(); }

Result<TensorGraph> ReadGraphJson(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  return ReadGraph(document);
}

Result<TensorGraph> ReadGraph(const JsonDocument& document) {
  TensorGraphParts parts = GraphReader(document).Read();
  CKPLAN_RETURN_IF_ERROR(document.Status());
  Result<TensorGraph> graph = TensorGraph::Create(std::move(parts));
  if (graph.ok()) return graph;
  Error error = std::move(graph).error();
  error.message = document.where() + ": " + error.message;
  return error;
}

}  // namespace ckplan
