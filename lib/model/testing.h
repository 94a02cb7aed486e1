// Small models for the tests of this folder, written in ONNX's own text.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "lib/model/model.h"
#include "onnx/defs/parser.h"

namespace ckplan {

// A file that is gone when the test is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() /
               ("ckplan_model_test_" + std::to_string(::getpid()) + "_" + name))
                  .string()) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::remove(path_.c_str()); }

  const std::string& path() const { return path_; }
  void Write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_;
};

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

inline ModelGraph LowerText(const std::string& graph, const LoadOptions& options = {},
                            Autograd autograd = Autograd::kMinimal) {
  return LowerProto(ParseGraph(graph), options, autograd);
}

inline Result<Model> LoadText(const std::string& graph, const LoadOptions& options = {}) {
  return LoadProto(ParseGraph(graph), options);
}

inline LoadOptions BatchOf(int64_t n) { return {{{"N", n}}, {}}; }

// The node of that operator; there must be one.
inline const Node& NodeOf(const TensorGraph& graph, const std::string& op) {
  for (const Node& node : graph.nodes()) {
    if (node.op == op) return node;
  }
  FAIL("no node " << op);
  return *graph.nodes().begin();
}

// Names of tensors, in their order, separated by spaces.
inline std::string NamesOf(const TensorGraph& graph, const std::vector<TensorId>& tensors) {
  std::string names;
  for (const TensorId tensor : tensors) {
    if (!names.empty()) names += ' ';
    names += graph.tensor(tensor).name;
  }
  return names;
}

}  // namespace ckplan
