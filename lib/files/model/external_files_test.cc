#include "lib/files/model/external_files.h"

#include "lib/files/model/testing_proto.h"

namespace ckplan {

TEST_CASE("external files: tensors anywhere in the model are found") {
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  const auto refer = [](onnx::TensorProto* tensor, const char* location) {
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto& length = *tensor->add_external_data();
    length.set_key("length");
    length.set_value("8");
    auto& pair = *tensor->add_external_data();
    pair.set_key("location");
    pair.set_value(location);
  };
  onnx::GraphProto& graph = *proto.mutable_graph();
  refer(graph.add_initializer(), "c.data");
  refer(graph.add_initializer(), "a.data");
  refer(graph.add_initializer(), "a.data");
  refer(graph.add_sparse_initializer()->mutable_values(), "sub/d.data");
  refer(graph.mutable_node(0)->add_attribute()->mutable_t(), "b.data");
  onnx::GraphProto& branch = *graph.mutable_node(0)->add_attribute()->mutable_g();
  refer(branch.add_node()->add_attribute()->add_tensors(), "e.data");
  refer(proto.add_functions()->add_node()->add_attribute()->mutable_t(), "f.data");
  const TemporaryFile path("external.onnx");
  path.Write(proto.SerializeAsString());
  const std::filesystem::path folder = std::filesystem::path(path.path()).parent_path();
  std::vector<std::string> expected;
  for (const char* const name : {"a.data", "b.data", "c.data", "e.data", "f.data", "sub/d.data"}) {
    expected.push_back((folder / name).string());
  }
  CHECK(ExternalFiles(path.path()) == expected);
  CHECK(ExternalFiles("/no/such/model.onnx").empty());
}

}  // namespace ckplan
