#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

std::vector<std::string> WarningsOf(const Result<Model>& model) {
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return model->warnings();
}

std::vector<std::string> WarningsOf(const std::string& graph, const LoadOptions& options = {}) {
  return WarningsOf(LoadText(graph, options));
}

TEST_CASE("declared types: one that contradicts the operator is reported with the planned type") {
  const auto warnings = WarningsOf(
      "g (float[2,8] x) => (float[2,9] y) <float[4,8] h> { [cut] h = Relu(x) y = Neg(h) }");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("\"h\" (declared float[4,8], made float[2,8] by Relu \"cut\", planned "
                         "float[2,8]), \"y\" (declared float[2,9], made float[2,8] by Neg "
                         "\"Neg:y\", planned float[2,8]);") != std::string::npos);
}

TEST_CASE("declared types: element types and ranks count as well") {
  CHECK(WarningsOf("g (float[2,8] x) => (float16[2,8] y) { y = Relu(x) }").size() == 1);
  CHECK(WarningsOf("g (float[2,8] x) => (float[16] y) { y = Relu(x) }").size() == 1);
}

TEST_CASE("declared types: the declared type is planned if ONNX knows only a part") {
  const std::string graph =
      "g (float[2,8] x) => (float[2,8] y, float[1,1] z) <int64[3,5] places, int64[2] q = {0,1}> "
      "{ places = NonZero(x) y = Relu(x) c = Cast<to = 1>(places) s = ReduceSum(c) t = "
      "ReduceSum(x) z = Add(s, t) }";
  const auto warnings = WarningsOf(graph);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("\"places\" (declared int64[3,5], made int64[2,?] by NonZero "
                         "\"NonZero:places\", planned int64[3,5])") != std::string::npos);
}

TEST_CASE("inferred types: a Range takes lists of one number, as ONNX's own functions make them") {
  CHECK(WarningsOf("g (float[6] x) => (float[6] y) <int64[1] n = {6}, int64 zero = {0}, int64 one "
                   "= {1}> { r = Range(zero, n, one) f = Cast<to = 1>(r) y = Add(x, f) }")
            .empty());
}

TEST_CASE("declared types: the first few of many are listed, and the others counted") {
  std::string graph = "g (float[2] x0) => (float[2] x9) <float[3] x1";
  for (int i = 2; i < 9; ++i) graph += ", float[3] x" + std::to_string(i);
  graph += "> {";
  for (int i = 0; i < 9; ++i) {
    graph += " x" + std::to_string(i + 1) + " = Relu(x" + std::to_string(i) + ")";
  }
  const auto warnings = WarningsOf(graph + " }");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("\"x3\"") != std::string::npos);
  CHECK(warnings[0].find("\"x4\"") == std::string::npos);
  CHECK(warnings[0].find("5 more") != std::string::npos);
}

TEST_CASE("declared types: a dimension with only a name contradicts nothing") {
  CHECK(WarningsOf("g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }", BatchOf(4)).empty());
  CHECK(WarningsOf("g (float[N,8] x) => (float[M,K] y) { y = Relu(x) }", BatchOf(4)).empty());
  CHECK(WarningsOf("g (float[N,8] x) => (float[N,M] y) { y = Transpose(x) }", BatchOf(4)).empty());
  CHECK(WarningsOf("g (float[N,8] x) => (float[N,8] y) { y = Transpose(x) }", BatchOf(4)).size() ==
        1);
}

TEST_CASE("declared types: another shape of an input makes them outdated, not wrong") {
  const std::string graph = "g (float[2,8] x) => (float[2,8] y) { y = Relu(x) }";
  CHECK(WarningsOf(graph, {{}, {{"x", {4, 8}}}}).empty());
  CHECK(WarningsOf(graph).empty());
}

TEST_CASE("declared types: results of branches and functions are compared, values inside are not") {
  const char* const branch =
      "g (float[2,8] x) => (float[2,9] y) <bool c = {1}> {"
      "  y = If (c) <then_branch = a () => (float[2,8] u) { u = Relu(x) },"
      "              else_branch = b () => (float[2,9] v) { v = Neg(x) }> }";
  CHECK(WarningsOf(branch).size() == 1);
  auto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[2,8] x) => (float[2,8] y) { y = local.Twice(x) }"
      "<opset_import: [\"\" : 20], domain: \"local\"> Twice (a) => (c) { b = Relu(a) c = Neg(b) }");
  auto& info = *proto.mutable_functions(0)->add_value_info();
  info.set_name("b");
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(7);
  CHECK(WarningsOf(LoadProto(proto)).empty());
  proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::DOUBLE);
  CHECK(WarningsOf(LoadProto(proto)).size() == 1);
}

}  // namespace
}  // namespace ckplan
