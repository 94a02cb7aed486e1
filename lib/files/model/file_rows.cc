#include "lib/files/model/file_rows.h"

#include <optional>
#include <string_view>
#include <unordered_map>

#include "lib/files/model/model_impl.h"

namespace ckplan {
namespace {

class RowReader {
 public:
  RowReader(const Model::Impl& model, const ModelGraph& lowered, NodeId first, size_t count)
      : model_(model), lowered_(lowered), first_(first), count_(count) {}

  std::vector<FileRow> Read() const {
    const onnx::GraphProto& graph = model_.proto->graph();
    std::vector<FileRow> rows(lowered_.roles.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (lowered_.roles[i].role == NodeRole::kView) rows[i].role = NodeRole::kView;
    }
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const ModelOperation& operation = model_.operations[i];
      FileRow& row = rows[static_cast<size_t>(operation.file_node)];
      if (operation.node != &graph.node(operation.file_node)) row.is_expanded = true;
      const NodeId id = lowered_.node_of_operation[i];
      if (id.is_none()) continue;
      row.operations.push_back(AsInFile(operation, id));
      if (row.operations.back().node.is_none() || row.role == NodeRole::kNode) continue;
      row.role = NodeRole::kNode;
      row.node = row.operations.back().node;
    }
    AddProducers(graph, &rows);
    return rows;
  }

 private:
  NodeId InPlan(NodeId id) const {
    const int32_t own = id.index() - first_.index();
    return own >= 0 && static_cast<size_t>(own) < count_ ? NodeId(own) : NodeId();
  }

  FileOperation AsInFile(const ModelOperation& operation, NodeId id) const {
    const Node& node = lowered_.graph.node(id);
    FileOperation result{InPlan(id), operation.type(), {}, {}};
    for (const TensorId read : node.backward_reads) {
      result.backward_reads.push_back(PlaceOf(operation, read));
    }
    for (const TensorId output : node.outputs) {
      result.outputs.push_back(PlaceAmong(operation.outputs, output, ValuePlace::Kind::kOutput)
                                   .value_or(ValuePlace{ValuePlace::Kind::kStatistic, 0}));
    }
    return result;
  }

  ValuePlace PlaceOf(const ModelOperation& operation, TensorId tensor) const {
    using Kind = ValuePlace::Kind;
    if (const auto input = PlaceAmong(operation.inputs, tensor, Kind::kInput)) return *input;
    return PlaceAmong(operation.outputs, tensor, Kind::kOutput)
        .value_or(ValuePlace{Kind::kStatistic, 0});
  }

  std::optional<ValuePlace> PlaceAmong(const std::vector<ValueIndex>& values, TensorId tensor,
                                       ValuePlace::Kind kind) const {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == kNoValue) continue;
      const TensorId found = lowered_.tensor_of_value[static_cast<size_t>(values[i])];
      if (found == tensor) return ValuePlace{kind, static_cast<int32_t>(i)};
    }
    return std::nullopt;
  }

  static void AddProducers(const onnx::GraphProto& graph, std::vector<FileRow>* rows) {
    std::unordered_map<std::string_view, int32_t> producer_of;
    for (size_t i = 0; i < rows->size(); ++i) {
      const onnx::NodeProto& node = graph.node(static_cast<int>(i));
      for (const std::string& input : node.input()) {
        const auto producer = producer_of.find(input);
        (*rows)[i].producers.push_back(producer == producer_of.end() ? -1 : producer->second);
      }
      for (const std::string& output : node.output()) {
        if (!output.empty()) producer_of.emplace(output, static_cast<int32_t>(i));
      }
    }
  }

  const Model::Impl& model_;
  const ModelGraph& lowered_;
  NodeId first_;
  size_t count_;
};

}  // namespace

std::vector<FileRow> FileRowsOf(const Model& model, const ModelGraph& lowered) {
  return FileRowsOf(model, lowered, NodeId(0), lowered.graph.nodes().size());
}

std::vector<FileRow> FileRowsOf(const Model& model, const ModelGraph& lowered, NodeId first,
                                size_t count) {
  return RowReader(model.impl(), lowered, first, count).Read();
}

}  // namespace ckplan
