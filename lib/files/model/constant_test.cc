// Tests that sparse initializers are read as the tensors that they stand for.
#include "lib/files/model/constant.h"

#include <cstring>

#include "lib/files/model/step_graph.h"
#include "lib/files/model/testing/proto.h"
#include "lib/files/model/weights.h"

namespace ckplan {
namespace {

template <typename T>
void SetRaw(onnx::TensorProto& tensor, int32_t type, const std::vector<T>& elements) {
  tensor.set_data_type(type);
  tensor.set_raw_data(
      std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)));
}

// Adds a sparse initializer. `indices` are positions, or as many for each value as there are
// `dims`.
template <typename T>
onnx::SparseTensorProto& AddSparse(onnx::ModelProto& proto, const std::string& name, int32_t type,
                                   const Dims& dims, const std::vector<T>& values,
                                   const std::vector<int64_t>& indices) {
  onnx::SparseTensorProto& sparse = *proto.mutable_graph()->add_sparse_initializer();
  for (const int64_t dim : dims) sparse.add_dims(dim);
  sparse.mutable_values()->set_name(name);
  sparse.mutable_values()->add_dims(static_cast<int64_t>(values.size()));
  SetRaw(*sparse.mutable_values(), type, values);
  sparse.mutable_indices()->add_dims(static_cast<int64_t>(values.size()));
  if (indices.size() != values.size()) {
    sparse.mutable_indices()->add_dims(static_cast<int64_t>(dims.size()));
  }
  SetRaw(*sparse.mutable_indices(), onnx::TensorProto::INT64, indices);
  return sparse;
}

void AddInts(onnx::ModelProto& proto, const std::string& name, const Dims& dims,
             const std::vector<int64_t>& values, const std::vector<int64_t>& indices) {
  AddSparse(proto, name, onnx::TensorProto::INT64, dims, values, indices);
}

Bytes OutputBytes(const onnx::ModelProto& proto) {
  const TensorGraph graph = LowerProto(proto).graph;
  return graph.tensor(graph.outputs()[0]).bytes;
}

TEST_CASE("sparse: an initializer is a shape, pads, starts, axes, repeats or indices") {
  struct Row {
    const char* graph;
    const char* name;
    Dims dims;
    std::vector<int64_t> values, indices;
    int64_t elements;
  };
  const Row rows[] = {
      {"{ a = Relu(x) y = Reshape(a, s) }", "s", {3}, {4, 16}, {0, 2}, 4 * 8 * 16},
      {"{ a = Relu(x) y = Pad(a, s) }", "s", {6}, {1, 2}, {0, 5}, 5 * 8 * 18},
      {"<int64[3] ends = {4,8,8}> { y = Slice(x, s, ends) }", "s", {3}, {2}, {1}, 4 * 6 * 8},
      {"{ y = ReduceSum<keepdims = 0>(x, s) }", "s", {2}, {2}, {1}, 8},
      {"{ one = Constant<value_ints = [1,1,1]>() r = Add(s, one) y = Tile(x, r) }",
       "s",
       {3},
       {2},
       {1},
       4 * 24 * 16},
      {"{ y = Gather(x, s) }", "s", {2}, {3}, {1}, 2 * 8 * 16},
  };
  for (const Row& row : rows) {
    CAPTURE(row.graph);
    onnx::ModelProto proto =
        ParseGraph("g (float[4,8,16] x) => (float[a,b,c] y) " + std::string(row.graph));
    proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    AddInts(proto, row.name, row.dims, row.values, row.indices);
    CHECK(OutputBytes(proto) == Bytes(row.elements * 4));
  }
}

TEST_CASE("sparse: positions may have an index for each dimension") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,8,16] x) => (float[4,8,16] y) "
      "{ row = Squeeze(s) a = Relu(x) y = Reshape(a, row) }");
  AddInts(proto, "s", {1, 3}, {16, 4}, {0, 2, 0, 0});
  CHECK(OutputBytes(proto) == Bytes(4 * 8 * 16 * 4));
}

TEST_CASE("sparse: a Constant's sparse value is read as well") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,8,16] x) => (float[4,8,16] y) { s = Constant() a = Relu(x) y = Reshape(a, s) }");
  onnx::ModelProto other;
  AddInts(other, "", {3}, {4, 16}, {0, 2});
  onnx::AttributeProto& attribute = *proto.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *attribute.mutable_sparse_tensor() = other.graph().sparse_initializer(0);
  CHECK(OutputBytes(proto) == Bytes(4 * 8 * 16 * 4));
}

TEST_CASE("sparse: positions outside the tensor, of a wrong number or type are not read") {
  const auto read = [](const Dims& dims, std::vector<int64_t> values, std::vector<int64_t> at,
                       auto change) {
    onnx::ModelProto proto;
    AddInts(proto, "s", dims, values, at);
    change(*proto.mutable_graph()->mutable_sparse_initializer(0));
    return ReadSparse(proto.graph().sparse_initializer(0));
  };
  const auto same = [](onnx::SparseTensorProto&) {};
  CHECK(read({3}, {5, 7}, {2, 0}, same)->ints == std::vector<int64_t>{7, 0, 5});
  CHECK(read({3}, {}, {}, same)->ints == std::vector<int64_t>{0, 0, 0});
  CHECK_FALSE(read({3}, {5}, {3}, same));
  CHECK_FALSE(read({3}, {5}, {-1}, same));
  CHECK_FALSE(read({2, 2}, {5}, {0, 2}, same));
  CHECK_FALSE(read({3}, {5}, {0}, [](auto& s) { s.mutable_indices()->set_dims(0, 2); }));
  CHECK_FALSE(
      read({3}, {5}, {0}, [](auto& s) { s.mutable_values()->set_dims(0, int64_t{1} << 62); }));
  CHECK_FALSE(read({3}, {5}, {0},
                   [](auto& s) { s.mutable_indices()->set_data_type(onnx::TensorProto::INT32); }));
  CHECK_FALSE(read({3}, {5}, {0}, [](auto& s) { s.set_dims(0, -3); }));
}

TEST_CASE("sparse: the contents of a sparse shape are part of the model's hash") {
  onnx::ModelProto proto =
      ParseGraph("g (float[4,8,16] x) => (float[a,b,c] y) { a = Relu(x) y = Pad(a, s) }");
  proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  onnx::ModelProto other = proto;
  AddInts(proto, "s", {6}, {1, 2}, {0, 5});
  AddInts(other, "s", {6}, {1, 2}, {0, 4});
  const Model first = LoadProto(proto).value();
  CHECK(first.identity().sha256 == LoadProto(proto)->identity().sha256);
  CHECK(first.identity().sha256 != LoadProto(other)->identity().sha256);
}

TEST_CASE("sparse: weights are read as the executor needs them, zeros included") {
  onnx::ModelProto proto = ParseGraph("g (float[2,3] x) => (float[2,2] y) { y = MatMul(x, w) }");
  AddSparse<float>(proto, "w", onnx::TensorProto::FLOAT, {3, 2}, {1.5F, -2.0F}, {1, 5});
  const TemporaryFile file("sparse.onnx");
  file.Write(proto.SerializeAsString());
  const WeightFile weights = WeightFile::Open(file.path()).value();
  Operand operand;
  operand.is_present = true;
  operand.type = ElementType::kFloat32;
  operand.dims = {3, 2};
  const WeightContents contents = weights.Read("w", operand).value();
  REQUIRE(contents.bytes);
  std::vector<float> elements(6);
  REQUIRE(contents.bytes->size() == 24);
  std::memcpy(elements.data(), contents.bytes->data(), 24);
  CHECK(elements == std::vector<float>{0, 1.5F, 0, 0, 0, -2});
}

}  // namespace
}  // namespace ckplan
