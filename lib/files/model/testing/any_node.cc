#include "lib/files/model/testing/any_node.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>
#include <vector>

#include "onnx/defs/data_type_utils.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

namespace {

using onnx::AttributeProto;
using onnx::OpSchema;
using onnx::TensorProto;

constexpr int kIrVersion = 10;
constexpr int kOpset = 20;  // ONNX's main domain.
constexpr size_t kUnusualOneIn = 16;
constexpr size_t kMaxStoredElements = 64;
constexpr int kManyNumbers = 2000;

constexpr int64_t kNumbers[] = {0,
                                1,
                                2,
                                3,
                                4,
                                5,
                                6,
                                7,
                                8,
                                16,
                                -1,
                                -2,
                                -3,
                                -4,
                                -5,
                                -8,
                                100,
                                1023,
                                1025,
                                65536,
                                1000000,
                                -1000000,
                                std::numeric_limits<int32_t>::max(),
                                std::numeric_limits<int32_t>::min(),
                                int64_t{1} << 32,
                                int64_t{1} << 40,
                                -(int64_t{1} << 40),
                                int64_t{1} << 62,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
constexpr size_t kSmallNumbers = 16;  // The first ones.
constexpr int64_t kSizes[] = {0,
                              1,
                              2,
                              3,
                              4,
                              5,
                              6,
                              8,
                              9,
                              16,
                              100,
                              1000,
                              1000000,
                              int64_t{1} << 31,
                              int64_t{1} << 40,
                              int64_t{1} << 62};
constexpr size_t kSmallSizes = 10;  // The first ones.
constexpr float kReals[] = {0,
                            1,
                            2,
                            0.5F,
                            -1,
                            -0.5F,
                            3,
                            1e9F,
                            1e30F,
                            -1e30F,
                            1e-30F,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
constexpr std::string_view kWords[] = {"",
                                       "NOTSET",
                                       "SAME_UPPER",
                                       "SAME_LOWER",
                                       "VALID",
                                       "constant",
                                       "reflect",
                                       "edge",
                                       "wrap",
                                       "nearest",
                                       "linear",
                                       "cubic",
                                       "bilinear",
                                       "bicubic",
                                       "forward",
                                       "reverse",
                                       "bidirectional",
                                       "sum",
                                       "mean",
                                       "none",
                                       "add",
                                       "mul",
                                       "max",
                                       "min",
                                       "avg",
                                       "DCR",
                                       "CRD",
                                       "half_pixel",
                                       "asymmetric",
                                       "align_corners",
                                       "tf_crop_and_resize",
                                       "floor",
                                       "round_prefer_floor",
                                       "stretch",
                                       "not_larger",
                                       "not_smaller",
                                       "RIGHT",
                                       "LEFT",
                                       "ab,bc->ac",
                                       "...b,bc->...c",
                                       "......ab,bc->ac",
                                       "ab->",
                                       "tanh",
                                       "Sigmoid",
                                       "Affine",
                                       "TF",
                                       "TFIDF",
                                       "RGB",
                                       "LOWER"};

// All operators of all operator sets in a fixed order.
const std::vector<OpSchema>& Schemas() {
  static const std::vector<OpSchema> schemas = [] {
    std::vector<OpSchema> all = onnx::OpSchemaRegistry::get_all_schemas_with_history();
    std::sort(all.begin(), all.end(), [](const OpSchema& a, const OpSchema& b) {
      return std::tuple(a.Name(), a.domain(), a.since_version()) <
             std::tuple(b.Name(), b.domain(), b.since_version());
    });
    return all;
  }();
  return schemas;
}

class NodeBuilder {
 public:
  explicit NodeBuilder(const NodeChoices& choices) : choices_(choices) {}

  std::string Make() {
    const OpSchema& schema = ChooseSchema();
    onnx::ModelProto model;
    model.set_ir_version(kIrVersion);
    AddOpset(model, schema.domain(), schema.since_version());
    if (!schema.domain().empty()) AddOpset(model, "", kOpset);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name("g");
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(schema.Name());
    node.set_domain(schema.domain());
    AddInputs(schema, graph, node);
    AddOutputs(schema, graph, node);
    for (const auto& [name, attribute] : schema.attributes()) {
      if (attribute.required ? !IsUnusual() : choices_.below(2) == 1) {
        AddAttribute(attribute, *node.add_attribute());
      }
    }
    if (IsUnusual() && node.input_size() > 0) SpoilInput(model, node);
    return model.SerializeAsString();
  }

 private:
  bool IsUnusual() { return choices_.below(kUnusualOneIn) == kUnusualOneIn - 1; }

  const OpSchema& ChooseSchema() {
    const std::string name = choices_.line();
    const std::vector<OpSchema>& all = Schemas();
    std::vector<const OpSchema*> versions;
    for (const OpSchema& schema : all) {
      if (schema.Name() == name) versions.push_back(&schema);
    }
    // The newest one is 0.
    if (!versions.empty()) return **(versions.end() - 1 - choices_.below(versions.size()));
    const size_t sum = std::accumulate(name.begin(), name.end(), size_t{0}, [](size_t s, char c) {
      return s * 131 + static_cast<unsigned char>(c);
    });
    return all[sum % all.size()];
  }

  static void AddOpset(onnx::ModelProto& model, const std::string& domain, int version) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }

  int64_t Number() {
    return kNumbers[choices_.below(IsUnusual() ? std::size(kNumbers) : kSmallNumbers)];
  }
  int64_t Size() { return kSizes[choices_.below(IsUnusual() ? std::size(kSizes) : kSmallSizes)]; }
  float Real() { return kReals[choices_.below(std::size(kReals))]; }
  std::string Text() {
    return choices_.below(2) == 1 ? choices_.line()
                                  : std::string(kWords[choices_.below(std::size(kWords))]);
  }

  // The element type of an operand: usually one that the operator accepts.
  int32_t ElementType(const OpSchema::FormalParameter& parameter) {
    std::vector<int32_t> types;
    for (const auto& name : parameter.GetTypes()) {
      const auto& type = onnx::Utils::DataTypeUtils::ToTypeProto(name);
      if (type.has_tensor_type()) types.push_back(type.tensor_type().elem_type());
    }
    std::sort(types.begin(), types.end());
    const bool is_any = types.empty() || IsUnusual();
    return is_any ? 1 + static_cast<int32_t>(choices_.below(TensorProto::DataType_ARRAYSIZE - 1))
                  : types[choices_.below(types.size())];
  }

  void FillTensor(TensorProto& tensor, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      switch (tensor.data_type()) {
        case TensorProto::FLOAT:
          tensor.add_float_data(Real());
          break;
        case TensorProto::DOUBLE:
          tensor.add_double_data(Real());
          break;
        case TensorProto::INT64:
          tensor.add_int64_data(Number());
          break;
        case TensorProto::STRING:
          tensor.add_string_data(Text());
          break;
        case TensorProto::UINT64:
        case TensorProto::UINT32:
          tensor.add_uint64_data(static_cast<uint64_t>(Number()));
          break;
        default:
          tensor.add_int32_data(static_cast<int32_t>(Number()));
      }
    }
  }

  static size_t CountOf(const std::vector<int64_t>& dims) {
    size_t count = 1;
    for (const int64_t dim : dims) {
      count = std::min(count * static_cast<size_t>(std::min<int64_t>(dim, kMaxStoredElements + 1)),
                       kMaxStoredElements + 1);
    }
    return count;
  }

  std::vector<int64_t> Dims() {
    std::vector<int64_t> dims(choices_.below(IsUnusual() ? 12 : 6));
    for (int64_t& dim : dims) dim = Size();
    return dims;
  }

  void AddInput(const OpSchema::FormalParameter& parameter, const std::string& name,
                onnx::GraphProto& graph) {
    const int32_t type = ElementType(parameter);
    const std::vector<int64_t> dims = Dims();
    const size_t count = CountOf(dims);
    if (choices_.below(2) == 1 && count <= kMaxStoredElements) {
      TensorProto& tensor = *graph.add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(type);
      for (const int64_t dim : dims) tensor.add_dims(dim);
      FillTensor(tensor, count);
      return;
    }
    onnx::ValueInfoProto& info = *graph.add_input();
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    auto& shape = *tensor.mutable_shape();
    for (const int64_t dim : dims) shape.add_dim()->set_dim_value(dim);
  }

  int CountBetween(int low, int high) {
    const int more = std::min(high - low, IsUnusual() ? 12 : 4);
    return low + static_cast<int>(choices_.below(static_cast<size_t>(more) + 1));
  }

  void AddInputs(const OpSchema& schema, onnx::GraphProto& graph, onnx::NodeProto& node) {
    const auto& parameters = schema.inputs();
    const int count = CountBetween(schema.min_input(), schema.max_input());
    for (int i = 0; i < count && !parameters.empty(); ++i) {
      const auto& parameter =
          parameters[std::min<size_t>(static_cast<size_t>(i), parameters.size() - 1)];
      const bool is_left_out =
          parameter.GetOption() == OpSchema::Optional && choices_.below(4) == 3;
      const std::string name = is_left_out ? "" : "x" + std::to_string(i);
      node.add_input(name);
      if (!is_left_out) AddInput(parameter, name, graph);
    }
  }

  void AddOutputs(const OpSchema& schema, onnx::GraphProto& graph, onnx::NodeProto& node) {
    const int count = std::max(1, CountBetween(schema.min_output(), schema.max_output()));
    for (int i = 0; i < count; ++i) {
      node.add_output("y" + std::to_string(i));
      graph.add_output()->set_name(node.output(i));
    }
  }

  // Omits an input, or makes an unknown operator produce it, so that it has no type.
  void SpoilInput(onnx::ModelProto& model, onnx::NodeProto& node) {
    const auto input = static_cast<int>(choices_.below(static_cast<size_t>(node.input_size())));
    if (choices_.below(2) == 0) return node.set_input(input, "");
    AddOpset(model, "other", 1);
    auto& nodes = *model.mutable_graph()->mutable_node();
    onnx::NodeProto& producer = *nodes.Add();
    producer.set_op_type("Opaque");
    producer.set_domain("other");
    producer.add_output("untyped");
    node.set_input(input, "untyped");
    nodes.SwapElements(0, 1);
  }

  int ListLength() { return IsUnusual() ? kManyNumbers : static_cast<int>(choices_.below(8)); }

  void FillGraph(onnx::GraphProto& graph) {
    graph.set_name("body");
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.add_input("x0");
    node.add_output("z");
    graph.add_output()->set_name("z");
  }

  void AddAttribute(const OpSchema::Attribute& described, AttributeProto& attribute) {
    attribute.set_name(described.name);
    const bool is_other = IsUnusual();
    const auto type = is_other ? static_cast<AttributeProto::AttributeType>(
                                     choices_.below(AttributeProto::AttributeType_ARRAYSIZE))
                               : described.type;
    attribute.set_type(type);
    FillAttribute(attribute);
  }

  void FillAttribute(AttributeProto& attribute) {
    switch (attribute.type()) {
      case AttributeProto::FLOAT:
        return attribute.set_f(Real());
      case AttributeProto::INT:
        return attribute.set_i(Number());
      case AttributeProto::STRING:
        return attribute.set_s(Text());
      case AttributeProto::TENSOR:
        return FillTensorAttribute(*attribute.mutable_t());
      case AttributeProto::GRAPH:
        return FillGraph(*attribute.mutable_g());
      default:
        return FillList(attribute);
    }
  }

  void FillTensorAttribute(TensorProto& tensor) {
    tensor.set_data_type(1 +
                         static_cast<int32_t>(choices_.below(TensorProto::DataType_ARRAYSIZE - 1)));
    const std::vector<int64_t> dims = Dims();
    for (const int64_t dim : dims) tensor.add_dims(dim);
    const size_t count = CountOf(dims);
    FillTensor(tensor, IsUnusual() ? choices_.below(4) : std::min(count, kMaxStoredElements));
  }

  // A long list repeats its last number.
  void FillList(AttributeProto& attribute) {
    const int length = ListLength();
    int64_t number = 0;
    for (int i = 0; i < length; ++i) {
      const bool is_repeated = length == kManyNumbers && i > 2;
      if (attribute.type() == AttributeProto::INTS) {
        if (!is_repeated) number = Number();
        attribute.add_ints(number);
      } else if (attribute.type() == AttributeProto::FLOATS) {
        attribute.add_floats(is_repeated ? 1 : Real());
      } else if (attribute.type() == AttributeProto::STRINGS) {
        attribute.add_strings(is_repeated ? "" : Text());
      }
    }
  }

  const NodeChoices& choices_;
};

}  // namespace

std::string AnyNodeModel(const NodeChoices& choices) { return NodeBuilder(choices).Make(); }

}  // namespace ckplan
