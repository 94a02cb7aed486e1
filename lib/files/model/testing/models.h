// Small models for tests, in ONNX's text format. This header avoids ONNX's headers, which are slow
// to compile; proto.h has the helpers that need them.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/files/model/model.h"

namespace ckplan {

// A file that is removed at the end of the test.
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

struct ParameterShape {
  std::string name;
  std::vector<int64_t> dims;
};

// Returns the bytes of an ONNX file. `graph` is ONNX text after the header: "g (float[N,8] x) =>
// (float[N,8] y) { y = Relu(x) }". `parameters` are float32, and their contents are not in the
// file.
std::string ModelFileBytes(const std::string& graph,
                           const std::vector<ParameterShape>& parameters = {}, int opset = 20);

Result<Model> LoadText(const std::string& graph, const LoadOptions& options = {});
ModelGraph LowerText(const std::string& graph, const LoadOptions& options = {},
                     Autograd autograd = Autograd::kMinimal);

inline LoadOptions BatchOf(int64_t n) { return {{{"N", n}}, {}}; }

// Returns a node with that operator. The graph must have one.
inline const Node& NodeOf(const TensorGraph& graph, const std::string& op) {
  for (const Node& node : graph.nodes()) {
    if (node.op == op) return node;
  }
  FAIL("no node " << op);
  return *graph.nodes().begin();
}

// Returns the names of tensors in order, separated by spaces.
inline std::string NamesOf(const TensorGraph& graph, const std::vector<TensorId>& tensors) {
  std::string names;
  for (const TensorId tensor : tensors) {
    if (!names.empty()) names += ' ';
    names += graph.tensor(tensor).name;
  }
  return names;
}

}  // namespace ckplan
