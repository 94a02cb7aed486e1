// Models for tests in this folder that inspect or change the protobuf message itself.
#pragma once

#include "lib/files/model/testing/models.h"
#include "onnx/defs/parser.h"

namespace ckplan {

inline onnx::ModelProto ParseText(const std::string& text) {
  onnx::ModelProto model;
  onnx::OnnxParser parser(text.c_str());
  const auto status = parser.Parse(model);
  REQUIRE_MESSAGE(status.IsOK(), status.ErrorMessage());
  return model;
}

// `graph` is the text after the header: "g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }".
inline onnx::ModelProto ParseGraph(const std::string& graph, int opset = 20) {
  return ParseText("<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + "]> " +
                   graph);
}

inline Result<Model> LoadProto(const onnx::ModelProto& proto, const LoadOptions& options = {}) {
  const TemporaryFile file("model.onnx");
  file.Write(proto.SerializeAsString());
  return LoadModel(file.path(), options);
}

inline ModelGraph LowerProto(const onnx::ModelProto& proto, const LoadOptions& options = {},
                             Autograd autograd = Autograd::kMinimal) {
  const Result<Model> model = LoadProto(proto, options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  LowerOptions lower;
  lower.autograd = autograd;
  lower.cost = ParseCostModel("flops").value();
  Result<ModelGraph> lowered = LowerModel(*model, lower);
  REQUIRE_MESSAGE(lowered.ok(), lowered.error().message);
  return std::move(lowered).value();
}

inline void CheckFails(const Result<Model>& model, ErrorCode code, const std::string& part) {
  REQUIRE_FALSE(model.ok());
  CAPTURE(model.error().message);
  CHECK(model.error().code == code);
  CHECK(model.error().message.find(part) != std::string::npos);
  CHECK(model.error().message.size() < 2000);
}

}  // namespace ckplan
