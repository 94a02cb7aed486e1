#include "lib/model/check_names.h"

#include <fmt/format.h>

#include "lib/model/bind_dims.h"

namespace ckplan {

namespace {

constexpr size_t kMaxNameBytes = size_t{16} << 10;

class LongestName {
 public:
  void Model(const onnx::ModelProto& model) {
    Graph(model.graph());
    for (const onnx::FunctionProto& function : model.functions()) {
      Offer(function.name());
      Offer(function.domain());
      OfferAll(function.input());
      OfferAll(function.output());
      Declared(function.value_info());
      Nodes(function.node());
    }
  }

  const std::string& found() const { return *longest_; }

 private:
  void Offer(const std::string& name) {
    if (name.size() > longest_->size()) longest_ = &name;
  }
  void OfferAll(const google::protobuf::RepeatedPtrField<std::string>& names) {
    for (const std::string& name : names) Offer(name);
  }

  void Declared(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& infos) {
    for (const onnx::ValueInfoProto& info : infos) {
      Offer(info.name());
      for (const auto& dim : info.type().tensor_type().shape().dim()) Offer(dim.dim_param());
    }
  }

  void Nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (const onnx::NodeProto& node : nodes) {
      Offer(node.name());
      Offer(node.op_type());
      Offer(node.domain());
      OfferAll(node.input());
      OfferAll(node.output());
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        Offer(attribute.name());
        if (attribute.has_g()) Graph(attribute.g());
        for (const onnx::GraphProto& graph : attribute.graphs()) Graph(graph);
      }
    }
  }

  void Graph(const onnx::GraphProto& graph) {
    Offer(graph.name());
    Declared(graph.input());
    Declared(graph.output());
    Declared(graph.value_info());
    for (const onnx::TensorProto& tensor : graph.initializer()) Offer(tensor.name());
    Nodes(graph.node());
  }

  const std::string empty_;
  const std::string* longest_ = &empty_;
};

}  // namespace

Result<Done> CheckNames(const onnx::ModelProto& model, const std::string& file) {
  LongestName longest;
  longest.Model(model);
  const std::string& name = longest.found();
  if (name.size() <= kMaxNameBytes) return Done{};
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("{}: the name \"{}\" is {} bytes long, more than {}; shorten it",
                               file, ShortName(name), name.size(), kMaxNameBytes));
}

}  // namespace ckplan
