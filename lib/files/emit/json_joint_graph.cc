#include "lib/files/emit/json_joint_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/files/emit/json_graph.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"
#include "lib/problem/graph/joint_graph.h"

namespace ckplan {
namespace {

constexpr std::string_view kJointKind = "joint";

// ---- Writing ----

class JointGraphWriter {
 public:
  explicit JointGraphWriter(const JointGraph& graph) : graph_(graph) {}

  std::string Write() && {
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("schema_version").Text(kSchemaVersion);
    json_.Key("kind").Text(kJointKind);
    json_.Key("name").Text(graph_.name());
    if (graph_.optimized_tensors()) WriteOptimizedTensors(*graph_.optimized_tensors(), &json_);
    json_.Key("values").BeginArray(JsonLayout::kLines);
    for (const Value& value : graph_.values()) WriteValue(value);
    json_.End();
    json_.Key("ops").BeginArray(JsonLayout::kLines);
    for (const Operation& op : graph_.ops()) WriteOperation(op);
    json_.End();
    WriteIds("results", graph_.results(), JsonLayout::kWrapped);
    json_.End();
    return std::move(json_).Finish();
  }

 private:
  void WriteValue(const Value& value) {
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("id").Integer(value.file_id);
    json_.Key("name").Text(value.name);
    json_.Key("bytes").Amount(value.bytes);
    json_.Key("kind").Text(NameOf(value.kind));
    if (!value.alias_of.is_none()) json_.Key("alias_of").Integer(FileId(value.alias_of));
    json_.End();
  }

  void WriteOperation(const Operation& op) {
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("id").Integer(op.file_id);
    json_.Key("name").Text(op.name);
    json_.Key("op").Text(op.op);
    json_.Key("phase").Text(NameOf(op.phase));
    WriteIds("reads", op.reads);
    WriteIds("writes", op.writes);
    json_.Key("cost").Amount(op.cost);
    json_.Key("workspace_bytes").Amount(op.workspace);
    json_.Key("repeat").Text(op.may_repeat ? "yes" : "never");
    json_.Key("in_place").BeginArray(JsonLayout::kInline);
    for (const auto& [write, read] : op.in_place) {
      json_.BeginArray(JsonLayout::kInline);
      json_.Integer(FileId(write)).Integer(FileId(read)).End();
    }
    json_.End();
    if (!op.module.empty()) json_.Key("module").Text(op.module);
    json_.End();
  }

  void WriteIds(std::string_view key, const std::vector<ValueId>& ids,
                JsonLayout layout = JsonLayout::kInline) {
    json_.Key(key).BeginArray(layout);
    for (const ValueId id : ids) json_.Integer(FileId(id));
    json_.End();
  }

  int64_t FileId(ValueId id) const { return graph_.value(id).file_id; }

  const JointGraph& graph_;
  JsonWriter json_;
};

// ---- Reading ----

class JointGraphReader {
 public:
  explicit JointGraphReader(const JsonDocument& document)
      : root_(document.root()), is_full_(root_.has("values")) {}

  // The caller must discard the result if the document's Status() is an error.
  JointGraphParts Read() && {
    CheckSchemaVersion(root_, /*allow_missing=*/true);
    parts_.name = root_.TextOr("name", "graph");
    if (is_full_ || root_.has("kind")) root_["kind"].Choice({kJointKind});
    const JsonView ops = root_["ops"];
    if (ops.is_array() && ops.size() == 0)
      ops.Fault("a joint graph must have at least one operation");
    if (is_full_) {
      ReadFullForm(ops);
    } else {
      ReadMinimalForm(ops);
    }
    return std::move(parts_);
  }

 private:
  void ReadFullForm(const JsonView& ops) {
    const JsonView values = root_["values"];
    for (size_t i = 0; i < values.size(); ++i) ReadValue(values.at(i));
    for (size_t i = 0; i < values.size(); ++i) ReadAlias(values.at(i), ValueId(i));
    for (size_t i = 0; i < ops.size(); ++i) ReadOperation(ops.at(i));
    ReadResults(root_["results"], "value");
    parts_.optimized_tensors = ReadOptimizedTensors(root_, PossibleGradients());
  }

  // Sums the values that can be gradients: values of a gradient kind, and results.
  Bytes PossibleGradients() const {
    IdVector<ValueId, bool> is_gradient(parts_.values.size());
    for (const ValueId id : parts_.values.ids()) {
      const Value& value = parts_.values[id];
      is_gradient[id] = value.alias_of.is_none() && (value.kind == ValueKind::kParameterGradient ||
                                                     value.kind == ValueKind::kArrivingGradient);
    }
    for (const ValueId id : parts_.results) {
      if (!id.is_none()) is_gradient[id] = true;
    }
    Bytes bytes;
    for (const ValueId id : parts_.values.ids()) {
      // Stops adding above the limit to avoid overflow; Create rejects such a graph anyway.
      if (!is_gradient[id] || bytes > kMaxTotalBytes) continue;
      bytes += std::min(parts_.values[id].bytes, kMaxTotalBytes);
    }
    return bytes;
  }

  void ReadValue(const JsonView& json) {
    PollStop();
    Value value;
    const JsonView id = json["id"];
    value.file_id = id.Integer();
    value.name = json.has("name") ? json["name"].Text() : fmt::format("v{}", value.file_id);
    value.bytes = Bytes(json["bytes"].Integer());
    value.kind = static_cast<ValueKind>(
        json["kind"].Choice({NameOf(ValueKind::kValue), NameOf(ValueKind::kConstant),
                             NameOf(ValueKind::kParameterGradient),
                             NameOf(ValueKind::kArrivingGradient), NameOf(ValueKind::kParameter)}));
    value_ids_.Add(id, "value", parts_.values.push_back(std::move(value)));
  }

  // Runs after ReadValue, since a value may follow its alias in the list.
  void ReadAlias(const JsonView& json, ValueId id) {
    if (!json.has("alias_of")) return;
    const JsonView base = json["alias_of"];
    const ValueId found = value_ids_.Find(base, "value");
    if (found == id) base.Fault("a value cannot be an alias of itself");
    parts_.values[id].alias_of = found;
  }

  void ReadOperation(const JsonView& json) {
    PollStop();
    Operation op;
    const JsonView id = json["id"];
    op.file_id = id.Integer();
    op.name = json.has("name") ? json["name"].Text() : fmt::format("op{}", op.file_id);
    op.op = json.TextOr("op", "");
    op.module = json.TextOr("module", "");
    if (json.has("phase")) {
      op.phase = static_cast<Phase>(
          json["phase"].Choice({NameOf(Phase::kForward), NameOf(Phase::kBackward)}));
    }
    op.reads = ReadValueIds(json["reads"], "value");
    op.writes = ReadValueIds(json["writes"], "value");
    op.cost = Cost(json["cost"].Integer());
    op.workspace = Bytes(json.IntegerOr("workspace_bytes", 0));
    op.may_repeat =
        json.has("repeat") ? json["repeat"].Choice({"yes", "never"}) == 0 : MayRepeatByType(op.op);
    if (json.has("in_place")) op.in_place = ReadPairs(json["in_place"]);
    op_ids_.Add(id, "operation", parts_.ops.push_back(std::move(op)));
  }

  std::vector<InPlaceWrite> ReadPairs(const JsonView& list) {
    std::vector<InPlaceWrite> pairs;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!ExpectPair(list.at(i), "[write, read]")) continue;
      pairs.push_back(
          {value_ids_.Find(list.at(i).at(0), "value"), value_ids_.Find(list.at(i).at(1), "value")});
    }
    return pairs;
  }

  void ReadMinimalForm(const JsonView& ops) {
    for (size_t i = 0; i < ops.size(); ++i) ReadValueOfOperation(ops.at(i), i);
    for (size_t i = 0; i < ops.size(); ++i) ReadMinimalOperation(ops.at(i), i);
    if (root_.has("results")) {
      ReadResults(root_["results"], "operation");
    } else if (!parts_.values.empty()) {
      parts_.results = {ValueId(parts_.values.size() - 1)};
    }
  }

  void ReadValueOfOperation(const JsonView& json, size_t index) {
    Value value;
    value.file_id = static_cast<int64_t>(index);
    value.name = json.has("name") ? json["name"].Text() : fmt::format("op{}", index);
    value.bytes = Bytes(json["bytes"].Integer());
    parts_.values.push_back(std::move(value));
  }

  void ReadMinimalOperation(const JsonView& json, size_t index) {
    PollStop();
    Operation op;
    op.file_id = static_cast<int64_t>(index);
    op.name = parts_.values[ValueId(index)].name;
    op.reads = ReadValueIds(json["reads"], "operation");
    op.writes = {ValueId(index)};
    op.cost = Cost(json["time"].Integer());
    parts_.ops.push_back(std::move(op));
  }

  std::vector<ValueId> ReadValueIds(const JsonView& list, std::string_view kind) {
    std::vector<ValueId> ids;
    for (size_t i = 0; i < list.size(); ++i) ids.push_back(FindValue(list.at(i), kind));
    return ids;
  }

  // Finds a value by its id or, in the minimal form, by the position of its operation.
  ValueId FindValue(const JsonView& json, std::string_view kind) {
    if (is_full_) return value_ids_.Find(json, kind);
    const int64_t position = json.Integer();
    if (!json.is_file_id()) return ValueId();
    const auto index = static_cast<size_t>(position);
    if (index < parts_.values.size()) return ValueId(index);
    json.Fault(fmt::format("no {0} {1}; {0}s are numbered from 0 in list order", kind, position));
    return ValueId();
  }

  void ReadResults(const JsonView& results, std::string_view kind) {
    parts_.results = ReadValueIds(results, kind);
    std::set<ValueId> seen;
    for (size_t i = 0; i < parts_.results.size(); ++i) {
      const ValueId id = parts_.results[i];
      if (!id.is_none() && !seen.insert(id).second) {
        results.at(i).Fault("this value is already a result of the graph");
      }
    }
  }

  JsonView root_;
  bool is_full_;
  JointGraphParts parts_;
  FileIds<ValueId> value_ids_;
  FileIds<OpId> op_ids_;
};

Result<JointGraph> ReadJointGraph(const JsonDocument& document) {
  JointGraphParts parts = JointGraphReader(document).Read();
  CKPLAN_RETURN_IF_ERROR(document.Status());
  Result<JointGraph> graph = JointGraph::Create(std::move(parts));
  if (graph.ok()) return graph;
  Error error = std::move(graph).error();
  error.message = document.where() + ": " + error.message;
  return error;
}

bool IsJoint(const JsonView& root) {
  if (root.has("kind") && root["kind"].is_text()) return root["kind"].Text() == kJointKind;
  return root.has("ops") && !root.has("nodes");
}

}  // namespace

std::string WriteJointGraphJson(const JointGraph& graph) { return JointGraphWriter(graph).Write(); }

Result<JointGraph> ReadJointGraphJson(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  return ReadJointGraph(document);
}

Result<AnyGraph> ReadAnyGraphJson(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  if (IsJoint(document.root())) {
    CKPLAN_ASSIGN_OR_RETURN(JointGraph graph, ReadJointGraph(document));
    return AnyGraph(std::move(graph));
  }
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph graph, ReadGraph(document));
  return AnyGraph(std::move(graph));
}

}  // namespace ckplan
