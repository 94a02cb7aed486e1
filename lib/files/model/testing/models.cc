#include "lib/files/model/testing/models.h"

#include "lib/files/model/testing/proto.h"

namespace ckplan {

std::string ModelFileBytes(const std::string& graph, const std::vector<ParameterShape>& parameters,
                           int opset) {
  onnx::ModelProto proto = ParseGraph(graph, opset);
  for (const ParameterShape& parameter : parameters) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(parameter.name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : parameter.dims) tensor.add_dims(dim);
  }
  return proto.SerializeAsString();
}

Result<Model> LoadText(const std::string& graph, const LoadOptions& options) {
  return LoadProto(ParseGraph(graph), options);
}

ModelGraph LowerText(const std::string& graph, const LoadOptions& options, Autograd autograd) {
  return LowerProto(ParseGraph(graph), options, autograd);
}

}  // namespace ckplan
