#include "lib/files/model/tensor_file.h"

#include <doctest/doctest.h>

#include "lib/files/model/constant.h"

namespace ckplan {
namespace {

std::string Bytes32(const std::vector<int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)};
}

TEST_CASE("tensor file: an ONNX model whose initializers are the tensors, in their order") {
  const std::string bytes = TensorFileBytes(
      "tensors", {{"a", ElementType::kInt32, {2, 1}, Bytes32({7, -3})},
                  {"b", ElementType::kBool, {}, std::string(1, '\1')},
                  {"c", ElementType::kBFloat16, {2}, {'\x80', '\x3F', '\x20', '\xC0'}}});
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(bytes));
  CHECK(model.graph().name() == "tensors");
  CHECK(model.graph().node_size() == 0);
  REQUIRE(model.graph().initializer_size() == 3);
  CHECK(model.graph().initializer(0).name() == "a");
  const auto a = ReadTensor(model.graph().initializer(0));
  REQUIRE(a.has_value());
  CHECK(a->dims == Dims{2, 1});
  CHECK(a->ints == std::vector<int64_t>{7, -3});
  const auto b = ReadTensor(model.graph().initializer(1));
  REQUIRE(b.has_value());
  CHECK(b->dims.empty());
  CHECK(b->ints == std::vector<int64_t>{1});
  const auto c = ReadTensor(model.graph().initializer(2));
  REQUIRE(c.has_value());
  CHECK(c->reals == std::vector<double>{1, -2.5});
}

}  // namespace
}  // namespace ckplan
