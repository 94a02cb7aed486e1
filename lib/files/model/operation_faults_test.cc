#include "lib/files/model/operation_faults.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/files/model/testing/models.h"

namespace ckplan {
namespace {

TEST_CASE("operation faults: what no runtime accepts is refused, whatever the file declares") {
  struct Row {
    const char* graph;
    const char* fault;
  };
  const Row rows[] = {
      // ONNX's own inference refuses these.
      {"g (float[4,16] x, float[12,8] w) => (float[4,8] y) { y = MatMul(x, w) }",
       "node \"MatMul:y\" (MatMul) on float[4,16], float[12,8]: Incompatible dimensions"},
      {"g (float[4,16] x, float[4,15] w) => (float[4,16] y) { y = Add(x, w) }",
       "Incompatible dimensions"},
      {"g (float[4,16] x) => (float[4,8] y) { y = Softmax<axis = 3>(x) }", "axis"},
      {"g (float[4,16] x, float[4,15] w) => (float[8,16] y) { y = Concat<axis = 0>(x, w) }",
       "(Concat) on float[4,16], float[4,15]"},
      {"g (float[4,16] x) => (float[4,5] y) <int64[2] s = {4, 5}> { y = Reshape(x, s) }",
       "(Reshape)"},
      {"g (float[4,16] x) => (float[16,4] y) { y = Transpose<perm = [1, 1]>(x) }", "(Transpose)"},
      // It overlooks these.
      {"g (float[4,16] x, float[12,8] w) => (float[4,8] y) { y = Gemm(x, w) }", "(Gemm)"},
      {"g (float[4,3,8,8] x, float[5,2,3,3] w) => (float[4,5,6,6] y) { y = Conv(x, w) }", "(Conv)"},
      {"g (float[4,3] x, float[4] s, float[3] b) => (float[4,3] y) { y = LayerNormalization(x, s, "
       "b) }",
       "(LayerNormalization)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.graph);
    const auto model = LoadText(row.graph);
    REQUIRE_FALSE(model.ok());
    CAPTURE(model.error().message);
    CHECK(model.error().code == ErrorCode::kInvalidInput);
    CHECK(model.error().message.find("invalid operands or attributes: node ") != std::string::npos);
    CHECK(model.error().message.find(row.fault) != std::string::npos);
  }
}

TEST_CASE("operation faults: a boolean mask that is added to scores can be planned") {
  CHECK(LoadText("g (float[4,16] x, bool[4,16] m) => (float[4,16] y) { y = Add(x, m) }").ok());
  CHECK_FALSE(
      LoadText("g (float[4,16] x, bool[4,15] m) => (float[4,16] y) { y = Add(x, m) }").ok());
}

TEST_CASE("operation faults: equations of Einsum are judged before ONNX reads them") {
  // ONNX 1.23.2 never returns from the first ones.
  for (const char* equation :
       {"......ab,bc->ac", "ab,bc->......ac", "a.b,bc->ac", "1b,bc->ac", "ab,b....c->ac",
        "ab;bc->ac", "ab,bc->a c.", "ab", "ab,bc,cd->ad", "abc,bc->ac", "ab,bc->a->c"}) {
    CAPTURE(equation);
    const auto model =
        LoadText(fmt::format("g (float[2,4] x, float[4,3] w) => (float[2,3] y) {{ y = "
                             "Einsum<equation = \"{}\">(x, w) }}",
                             equation));
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kInvalidInput);
    CHECK(model.error().message.find("its equation ") != std::string::npos);
  }
  for (const char* equation : {"ab,bc->ac", "...b,bc->...c", "ab,bc", " a b , b c -> a c "}) {
    CAPTURE(equation);
    CHECK(LoadText(fmt::format("g (float[2,4] x, float[4,3] w) => (float[2,3] y) {{ y = "
                               "Einsum<equation = \"{}\">(x, w) }}",
                               equation))
              .ok());
  }
}

TEST_CASE("operation faults: an operand with a number for each axis has few of them") {
  // ONNX 1.23.2 adds a dimension for each.
  for (const char* node : {"y = Reshape(x, n)", "y = Expand(x, n)", "y = ConstantOfShape(n)",
                           "y = Tile(x, n)", "y = Unsqueeze(x, n)"}) {
    CAPTURE(node);
    const auto model = LoadText(
        fmt::format("g (float[2,4] x, int64[1000000000000] n) => (float[2,4] y) {{ {} }}", node));
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kInvalidInput);
    CHECK(model.error().message.find("has 1000000000000 numbers, one for each axis") !=
          std::string::npos);
  }
}

TEST_CASE("operation faults: attributes are judged before ONNX reads them") {
  struct Row {
    const char* node;
    const char* fault;
  };
  const Row rows[] = {
      // ONNX 1.23.2 reads a dimension in front of the first one.
      {"GatherND<batch_dims = -6>(x, i)", "attribute batch_dims is -6; it must be from 0 to"},
      {"GatherND<batch_dims = 9223372036854775807>(x, i)", "attribute batch_dims is 9223372036854"},
      {"Softmax<axis = 1.5>(x)", "attribute axis has type FLOAT; it must be INT"},
      {"Softmax<axis = [1]>(x)", "attribute axis has type INTS; it must be INT"},
      {"Transpose<perm = 1>(x)", "attribute perm has type INT; it must be INTS"},
      {"Cast<to = \"float\">(x)", "attribute to has type STRING; it must be INT"},
      {"Cast(x)", "it lacks the required attribute to"},
      {"Concat(x, x)", "it lacks the required attribute axis"},
      {"Flatten<axis = -9223372036854775808>(x)", "attribute axis names axis -9223372036854775808"},
      {"Flatten<axis = 6>(x)", "attribute axis names axis 6, but input 0 has 4 axes"},
      {"SpaceToDepth<blocksize = 0>(x)", "attribute blocksize is 0; it must be from 1 to"},
      {"MaxPool<kernel_shape = [2, 2], strides = [0, 1]>(x)", "attribute strides is 0"},
      {"MaxPool<kernel_shape = [2, 4294967296]>(x)", "attribute kernel_shape is 4294967296"},
      {"Split<num_outputs = -1>(x)", "attribute num_outputs is -1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.node);
    const auto model = LoadText(
        fmt::format("g (float[2,4,4,4] x, int64[2,4] i) => (float[2,4] y) {{ y = {} }}", row.node));
    REQUIRE_FALSE(model.ok());
    CAPTURE(model.error().message);
    CHECK(model.error().code == ErrorCode::kInvalidInput);
    CHECK(model.error().message.find(row.fault) != std::string::npos);
  }
}

TEST_CASE("operation faults: the axes at either end are allowed") {
  for (const char* rest :
       {"float[128,1] y) { y = Flatten<axis = 4>(x) }",
        "float[1,128] y) { y = Flatten<axis = -4>(x) }",
        "float[2,4,4,4] y) { y = Softmax<axis = -1>(x) }",
        "float[1,2,4,4,4] y) <int64[1] a = {-5}> { y = Unsqueeze(x, a) }",
        "float[2,4,3] y) <int64 d = {3}, float[2] v = {0, 1}> { y = OneHot<axis = 2>(i, d, v) }"}) {
    CAPTURE(rest);
    const auto model = LoadText(fmt::format("g (float[2,4,4,4] x, int64[2,4] i) => ({}", rest));
    CAPTURE(model.ok() ? "" : model.error().message);
    CHECK(model.ok());
  }
}

TEST_CASE("operation faults: a list of numbers for axes is short") {
  std::string axes = "0";
  for (int i = 0; i < 2000; ++i) axes += ", 0";
  const auto model = LoadText(
      fmt::format("g (float[2,4] x) => (float[2,4] y) {{ y = Transpose<perm = [{}]>(x) }}", axes));
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().code == ErrorCode::kInvalidInput);
  CHECK(model.error().message.find("attribute perm has 2001 numbers; at most 1024 are allowed") !=
        std::string::npos);
}

TEST_CASE("operation faults: an operand of unknown shape is the reason that is named") {
  const auto model =
      LoadText("g (float[2,4] x) => (float[2,4] y) { h = vendor.Magic(x) y = Relu(h) }");
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().message.find("Magic") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
