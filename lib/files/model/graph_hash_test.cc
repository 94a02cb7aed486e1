// Tests which changes give a model another identity.
#include "lib/files/model/graph_hash.h"

#include <doctest/doctest.h>

#include <functional>

#include "lib/files/model/model_impl.h"
#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

using onnx::ModelProto;

constexpr const char* kNet =
    "net (float[N,3,8,8] x) => (float[N,M] y) "
    "<float[4,3,3,3] w, float[4] b = {1,2,3,4}, float[1] factor = {0.5}, "
    " float[4] scales = {1,1,2,2}, int64[2] shape = {0,-1}, float[N,4,6,6] h> {"
    "  h = Conv <strides = [1,1]> (x, w, b)"
    "  s = Mul(h, factor)"
    "  r = Resize (s, , scales)"
    "  y = Reshape(r, shape)"
    "}";

ModelProto Net() {
  ModelProto model = ParseGraph(kNet);
  auto& weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : {4, 3, 3, 3}) weight.add_dims(dim);
  for (int i = 0; i < 4 * 3 * 3 * 3; ++i) weight.add_float_data(0.5F);
  for (auto& node : *model.mutable_graph()->mutable_node()) node.set_name("n_" + node.output(0));
  return model;
}

onnx::TensorProto& InitializerOf(ModelProto& model, const std::string& name) {
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() == name) return tensor;
  }
  FAIL("no initializer " << name);
  return *model.mutable_graph()->mutable_initializer(0);
}

struct Change {
  const char* what;
  std::function<void(ModelProto&)> make;
};

std::string HashAfter(const Change& change) {
  CAPTURE(change.what);
  const ModelProto before = Net();
  ModelProto after = before;
  change.make(after);
  CHECK(after.SerializeAsString() != before.SerializeAsString());
  return GraphHash(after);
}

const Change kSame[] = {
    {"retrained weights", [](ModelProto& m) { InitializerOf(m, "w").set_float_data(7, -3); }},
    {"a retrained bias, as small as a shape",
     [](ModelProto& m) { InitializerOf(m, "b").set_float_data(0, 9); }},
    {"a retrained number", [](ModelProto& m) { InitializerOf(m, "factor").set_float_data(0, 2); }},
    {"weights in another file",
     [](ModelProto& m) {
       auto& tensor = InitializerOf(m, "w");
       tensor.clear_float_data();
       tensor.set_data_location(onnx::TensorProto::EXTERNAL);
       auto* entry = tensor.add_external_data();
       entry->set_key("location");
       entry->set_value("weights.bin");
     }},
    {"a shape as raw bytes",
     [](ModelProto& m) {
       auto& tensor = InitializerOf(m, "shape");
       tensor.clear_int64_data();
       const int64_t values[] = {0, -1};
       tensor.set_raw_data(values, sizeof(values));
     }},
    {"the order of initializers",
     [](ModelProto& m) { m.mutable_graph()->mutable_initializer()->SwapElements(0, 3); }},
    {"an initializer that is listed as an input",
     [](ModelProto& m) { m.mutable_graph()->add_input()->set_name("w"); }},
    {"doc_string of the model", [](ModelProto& m) { m.set_doc_string("a net"); }},
    {"doc_string of a node",
     [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_doc_string("line 7"); }},
    {"doc_string of an input",
     [](ModelProto& m) { m.mutable_graph()->mutable_input(0)->set_doc_string("images"); }},
    {"metadata of the model", [](ModelProto& m) { m.add_metadata_props()->set_key("epoch"); }},
    {"metadata of a node",
     [](ModelProto& m) {
       m.mutable_graph()->mutable_node(0)->add_metadata_props()->set_key("stack");
     }},
    {"the producer",
     [](ModelProto& m) {
       m.set_producer_name("another");
       m.set_producer_version("2");
       m.set_model_version(3);
     }},
    {"fields that are not known",
     [](ModelProto& m) {
       auto& graph = *m.mutable_graph();
       graph.GetReflection()->MutableUnknownFields(&graph)->AddVarint(777, 1);
     }},
    {"the full name of the standard domain",
     [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_domain("ai.onnx"); }},
};

const Change kOther[] = {
    {"the graph's name", [](ModelProto& m) { m.mutable_graph()->set_name("net2"); }},
    {"a node's name", [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->set_name("n2"); }},
    {"an input's name",
     [](ModelProto& m) {
       m.mutable_graph()->mutable_input(0)->set_name("image");
       m.mutable_graph()->mutable_node(0)->set_input(0, "image");
     }},
    {"a tensor's name",
     [](ModelProto& m) {
       m.mutable_graph()->mutable_node(1)->set_output(0, "t");
       m.mutable_graph()->mutable_node(2)->set_input(0, "t");
     }},
    {"a weight's name",
     [](ModelProto& m) {
       InitializerOf(m, "w").set_name("weight");
       m.mutable_graph()->mutable_node(0)->set_input(1, "weight");
     }},
    {"a dimension's name",
     [](ModelProto& m) {
       auto& type = *m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(0)->set_dim_param("batch");
     }},
    {"a dimension's size",
     [](ModelProto& m) {
       auto& type = *m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(2)->set_dim_value(9);
     }},
    {"an input's type",
     [](ModelProto& m) {
       auto& type = *m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
       type.set_elem_type(onnx::TensorProto::DOUBLE);
     }},
    {"a weight's shape", [](ModelProto& m) { InitializerOf(m, "b").set_dims(0, 5); }},
    {"a weight's type",
     [](ModelProto& m) { InitializerOf(m, "w").set_data_type(onnx::TensorProto::DOUBLE); }},
    {"a declared shape",
     [](ModelProto& m) {
       auto& type =
           *m.mutable_graph()->mutable_value_info(0)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(1)->set_dim_value(5);
     }},
    {"an attribute",
     [](ModelProto& m) {
       m.mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_ints(1, 2);
     }},
    {"an operator", [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->set_op_type("Add"); }},
    {"an operator's domain",
     [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->set_domain("com.microsoft"); }},
    {"a shape that is read",
     [](ModelProto& m) { InitializerOf(m, "shape").set_int64_data(0, -1); }},
    {"the scales of a Resize",
     [](ModelProto& m) { InitializerOf(m, "scales").set_float_data(2, 3); }},
    {"the order of operands",
     [](ModelProto& m) {
       m.mutable_graph()->mutable_node(1)->mutable_input()->SwapElements(0, 1);
     }},
    {"the operator set", [](ModelProto& m) { m.mutable_opset_import(0)->set_version(21); }},
    {"one node less", [](ModelProto& m) { m.mutable_graph()->mutable_node()->RemoveLast(); }},
};

TEST_CASE("graph hash: weights, remarks and the form of the file do not count") {
  const std::string hash = GraphHash(Net());
  CHECK(hash.size() == 64);
  for (const Change& change : kSame) CHECK_MESSAGE(HashAfter(change) == hash, change.what);
}

TEST_CASE("graph hash: names, operators, attributes, types and shapes count") {
  const std::string hash = GraphHash(Net());
  for (const Change& change : kOther) CHECK_MESSAGE(HashAfter(change) != hash, change.what);
}

TEST_CASE(
    "graph hash: a float from which a size is folded counts, a float that is only trained does "
    "not") {
  constexpr const char* kFolded =
      "g (float[N,3,8,8] x) => (float[N,3,A,B] y) "
      "<float[4] one = {1,1,1,1}, float[4] two = {1,1,2,2}, float[3] bias = {1,2,3}> {"
      "  size = Shape(x)"
      "  real = Cast <to = 1> (size)"
      "  ratio = Mul(one, two)"
      "  large = Mul(real, ratio)"
      "  sizes = Cast <to = 7> (large)"
      "  r = Resize (x, , , sizes)"
      "  moved = Unsqueeze <axes = [0,2,3]> (bias)"
      "  y = Add(r, moved)"
      "}";
  const ModelProto model = ParseGraph(kFolded, 11);
  for (const auto& tensor : model.graph().initializer()) {
    CAPTURE(tensor.name());
    ModelProto changed = model;
    InitializerOf(changed, tensor.name()).set_float_data(0, 4);
    CHECK((GraphHash(changed) != GraphHash(model)) == (tensor.name() != "bias"));
  }
}

TEST_CASE(
    "graph hash: constants of functions and of branches count where shapes are computed from "
    "them") {
  const ModelProto model = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[N,1,8,8] x) => (float[N,1,A,B] y) <float[4] s = {1,1,2,2}, float[1] p = {2}> {"
      "  z = Mul(x, p) y = local.Up(z, s) }"
      "<opset_import: [\"\" : 20], domain: \"local\"> Up (a, s) => (c) {"
      "  f = Constant <value = float[1] {3}> ()"
      "  b = Mul(a, f)"
      "  t = Identity(s)"
      "  c = Resize (b, , t) }");
  ModelProto changed = model;
  InitializerOf(changed, "s").set_float_data(2, 4);
  CHECK(GraphHash(changed) != GraphHash(model));
  changed = model;
  InitializerOf(changed, "p").set_float_data(0, 4);
  CHECK(GraphHash(changed) == GraphHash(model));
  changed = model;
  auto& constant = *changed.mutable_functions(0)->mutable_node(0)->mutable_attribute(0);
  constant.mutable_t()->set_float_data(0, 4);
  CHECK(GraphHash(changed) == GraphHash(model));
  changed = model;
  changed.mutable_functions(0)->mutable_node(2)->set_op_type("Neg");
  CHECK(GraphHash(changed) != GraphHash(model));
}

TEST_CASE("graph hash: functions that call each other end") {
  const ModelProto model = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> "
      "g (float[2,8] x) => (float[2,8] y) { y = local.Loop(x) }"
      "<opset_import: [\"local\" : 1], domain: \"local\"> Loop (a) => (b) { b = local.Loop(a) }");
  CHECK(GraphHash(model).size() == 64);
}

TEST_CASE("load: a model is compared with the planned one before its dimensions are bound") {
  const TemporaryFile file("renamed.onnx");
  ModelProto model = ParseGraph("g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }");
  file.Write(model.SerializeAsString());
  const ModelIdentity planned = LoadModel(file.path(), BatchOf(4))->identity();
  LoadOptions options = BatchOf(4);
  options.planned = &planned;
  CHECK(LoadModel(file.path(), options).ok());
  auto& type = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  file.Write(model.SerializeAsString());
  CheckFails(LoadModel(file.path(), options), ErrorCode::kCheckFailed, "for another model");
}

}  // namespace
}  // namespace ckplan
