#include "lib/files/model/tensor_file.h"

#include <utility>

#include "onnx/onnx_pb.h"

namespace ckplan {

namespace {

int32_t OnnxTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return onnx::TensorProto::FLOAT;
    case ElementType::kBFloat16:
      return onnx::TensorProto::BFLOAT16;
    case ElementType::kInt32:
      return onnx::TensorProto::INT32;
    case ElementType::kInt64:
      return onnx::TensorProto::INT64;
    case ElementType::kBool:
      return onnx::TensorProto::BOOL;
  }
  return onnx::TensorProto::UNDEFINED;
}

}  // namespace

std::string TensorFileBytes(const std::string& graph_name, std::vector<NamedTensor> tensors) {
  onnx::ModelProto model;
  model.set_ir_version(onnx::Version::IR_VERSION);
  model.mutable_graph()->set_name(graph_name);
  model.add_opset_import()->set_version(1);
  for (NamedTensor& tensor : tensors) {
    onnx::TensorProto& initializer = *model.mutable_graph()->add_initializer();
    initializer.set_name(std::move(tensor.name));
    initializer.set_data_type(OnnxTypeOf(tensor.type));
    for (const int64_t dim : tensor.dims) initializer.add_dims(dim);
    initializer.set_raw_data(std::move(tensor.contents));
  }
  return model.SerializeAsString();
}

}  // namespace ckplan
