// Tests the OpSpec of an operation: the model's types and sizes, and the contents that matter.
#include "lib/files/model/op_spec_of.h"

#include <doctest/doctest.h>

#include "lib/files/model/facts.h"
#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

TEST_CASE("specs: operands have the model's own types and exact bytes") {
  const Result<Model> model =
      LoadProto(ParseGraph("g (float16[3,5] x) => (float16[3,5] y) <float16 s = {15360}> {"
                           " h = Mul(x, s) q = Cast<to = 22>(h) y = Cast<to = 10>(q) }",
                           21));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const Model::Impl& impl = model->impl();
  const OpSpec spec = PlannedSpecOf(impl, impl.operations[1]);
  CHECK(spec.type == "Cast");
  CHECK(spec.opset == 21);
  CHECK(spec.input(0).model_type() == TensorType::kFloat16);
  CHECK(spec.input(0).bytes() == 30);
  CHECK(spec.output(0).model_type() == TensorType::kInt4);
  CHECK(spec.output(0).bytes() == 8);  // 15 elements, two per byte.
  CHECK(spec.saved_type == TensorType::kFloat16);
}

TEST_CASE("specs: with --activation-type sizes follow it, types do not") {
  LoadOptions options;
  options.activation_type = ActivationType::kBFloat16;
  const Result<Model> model = LoadText(
      "g (float[3,5] x) => (float[3,5] y) <float[5] w = {1,2,3,4,5}> { y = Mul(x, w) }", options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const OpSpec spec = PlannedSpecOf(model->impl(), model->impl().operations[0]);
  CHECK(spec.input(0).model_type() == TensorType::kFloat32);
  CHECK(spec.input(0).bytes() == 30);
  CHECK(spec.input(1).bytes() == 20);  // Parameters keep the model's size.
  CHECK(spec.output(0).bytes() == 30);
  CHECK(spec.saved_type == TensorType::kFloat32);
}

TEST_CASE("specs: known integers and single numbers are included, weights are not") {
  const Result<Model> model = LoadText(
      "g (float[2,3] x) => (float[6] y) <int64[1] s = {-1}, float[2,3] w = {1,2,3,4,5,6},"
      " float r = {0.0}> { h = Mul(x, w) d = Dropout(h, r) y = Reshape(d, s) }");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const Model::Impl& impl = model->impl();
  CHECK_FALSE(PlannedSpecOf(impl, impl.operations[0]).input(1).known.has_value());
  CHECK(PlannedSpecOf(impl, impl.operations[1]).input(1).known->reals == std::vector<double>{0});
  CHECK(PlannedSpecOf(impl, impl.operations[2]).input(1).known->ints == std::vector<int64_t>{-1});
}

TEST_CASE("specs: an operator outside ONNX's own domain is named with its domain") {
  const Result<Model> model =
      LoadProto(ParseText("<ir_version: 10, opset_import: [\"\" : 20, \"my.domain\" : 3]> "
                          "g (float[2] x) => (float[2] y) <float[2] h> { h = my.domain.Relu(x)"
                          " y = Relu(h) }"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const Model::Impl& impl = model->impl();
  const OpSpec spec = PlannedSpecOf(impl, impl.operations[0]);
  CHECK(spec.type == "my.domain.Relu");
  CHECK(spec.opset == 3);
  CHECK_FALSE(RuleOf(spec.type).is_known());
}

TEST_CASE("facts: a spec says which gradients are computed, for the batch and for parameters") {
  const Result<Model> model = LoadText(
      "g (float[2,3] x) => (float[2,3] y) <float[3] s = {1,1,1}> {"
      " e = Constant<value = float {0.5}>() h = Mul(x, s) y = Add(h, e) }");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const ModelFacts facts = FindFacts(model->impl());
  CHECK_FALSE(facts.operations[1].spec.input(0).has_gradient);
  CHECK(facts.operations[1].spec.input(1).has_gradient);
  CHECK(facts.operations[1].spec.output(0).has_gradient);
  CHECK(facts.operations[2].spec.input(0).has_gradient);
  CHECK_FALSE(facts.operations[2].spec.input(1).has_gradient);
}

}  // namespace
}  // namespace ckplan
