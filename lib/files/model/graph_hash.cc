#include "lib/files/model/graph_hash.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/base/hash.h"
#include "lib/files/model/constant.h"
#include "lib/files/model/fold.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int kDeepestCalls = 64;  // Models with more deeply nested calls are refused.

// Operators with float inputs, from `first_input` on, that determine the output's shape or whether
// the output is a view.
struct ShapeOperandRow {
  std::string_view op;
  int first_input;
};
constexpr ShapeOperandRow kShapeOperands[] = {
    {"Resize", 1}, {"Upsample", 1}, {"Range", 0}, {"Dropout", 1}};

bool IsShapeOperand(const NodeProto& node, int input) {
  return std::any_of(std::begin(kShapeOperands), std::end(kShapeOperands), [&](const auto& row) {
    return node.op_type() == row.op && input >= row.first_input;
  });
}

// True if the node computes integers or booleans from operands of any type.
bool MakesIntegers(const NodeProto& node) {
  static constexpr std::string_view kOps[] = {
      "CastLike", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NonZero"};
  if (node.op_type() != "Cast") {
    return std::find(std::begin(kOps), std::end(kOps), node.op_type()) != std::end(kOps);
  }
  return !IsFloatType(static_cast<int32_t>(IntAttribute(node, "to", 0)));
}

// True if the result does not depend on the contents of any input.
bool IsAlwaysConstant(const NodeProto& node) {
  return node.op_type() == "Constant" || node.op_type() == "Shape" || node.op_type() == "Size";
}

}  // namespace

// Searches one body: the main graph or a function, including branches.
class ShapeOperandFinder {
 public:
  explicit ShapeOperandFinder(ShapeOperands& all) : all_(all) {}

  ShapeOperands::Names OfGraph(const GraphProto& graph) {
    AddGraph(graph);
    return Find();
  }

  // The arguments of a call may be constant.
  ShapeOperands::Names OfFunction(const onnx::FunctionProto& function) {
    for (const std::string& input : function.input()) constants_.insert(input);
    for (const NodeProto& node : function.node()) AddNode(node);
    return Find();
  }

 private:
  void AddGraph(const GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) constants_.insert(tensor.name());
    for (const auto& sparse : graph.sparse_initializer()) {
      constants_.insert(sparse.values().name());
    }
    for (const NodeProto& node : graph.node()) AddNode(node);
  }

  // The body of a node is hashed before it.
  void AddNode(const NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) AddBranch(node, attribute.g());
      for (const GraphProto& graph : attribute.graphs()) AddBranch(node, graph);
    }
    nodes_.push_back(&node);
  }

  void AddBranch(const NodeProto& node, const GraphProto& branch) {
    AddGraph(branch);
    for (int i = 0; i < std::min(node.output_size(), branch.output_size()); ++i) {
      branch_outputs_[node.output(i)].push_back(&branch.output(i).name());
    }
  }

  ShapeOperands::Names Find() {
    for (const NodeProto* node : nodes_) FindConstants(*node);
    std::for_each(nodes_.rbegin(), nodes_.rend(), [this](const NodeProto* node) { Mark(*node); });
    return std::move(marked_);
  }

  bool IsConstant(const std::string& name) const {
    return name.empty() || constants_.contains(name);
  }

  void FindConstants(const NodeProto& node) {
    for (const std::string& output : node.output()) {
      const auto branches = branch_outputs_.find(output);
      const bool is_constant =
          branches == branch_outputs_.end()
              ? IsFoldable(node)
              : std::all_of(branches->second.begin(), branches->second.end(),
                            [this](const std::string* name) { return IsConstant(*name); });
      if (is_constant) constants_.insert(output);
    }
  }

  bool IsFoldable(const NodeProto& node) const {
    const bool may_be_folded =
        all_.functions_.Find(node) != nullptr || (IsStandard(node) && IsFolded(node.op_type()));
    return may_be_folded &&
           (IsAlwaysConstant(node) ||
            std::all_of(node.input().begin(), node.input().end(),
                        [this](const std::string& name) { return IsConstant(name); }));
  }

  void Mark(const NodeProto& node) {
    bool is_marked = false;
    for (const std::string& output : node.output()) {
      if (!marked_.contains(output)) continue;
      is_marked = true;
      const auto branches = branch_outputs_.find(output);
      if (branches == branch_outputs_.end()) continue;
      for (const std::string* name : branches->second) marked_.insert(*name);
    }
    const onnx::FunctionProto* function = all_.functions_.Find(node);
    const ShapeOperands::Names* inside =
        function == nullptr ? nullptr : &all_.InFunction(*function);
    for (int i = 0; i < node.input_size(); ++i) {
      if (!constants_.contains(node.input(i))) continue;
      const bool is_read =
          is_marked ||
          (inside == nullptr ? IsReadByOperator(node, i)
                             : i < function->input_size() && inside->contains(function->input(i)));
      if (is_read) marked_.insert(node.input(i));
    }
  }

  bool IsReadByOperator(const NodeProto& node, int input) const {
    if (!IsStandard(node)) return false;
    return IsShapeOperand(node, input) || (MakesIntegers(node) && IsFoldable(node));
  }

  ShapeOperands& all_;
  std::vector<const NodeProto*> nodes_;
  std::unordered_map<std::string, std::vector<const std::string*>> branch_outputs_;
  ShapeOperands::Names constants_;
  ShapeOperands::Names marked_;
};

ShapeOperands::ShapeOperands(const onnx::ModelProto& model) : functions_(model) {
  in_graph_ = ShapeOperandFinder(*this).OfGraph(model.graph());
}

const ShapeOperands::Names& ShapeOperands::InFunction(const onnx::FunctionProto& function) {
  // A function that calls itself finds its own entry, which is empty until its body is done.
  const auto [entry, is_new] = in_functions_.try_emplace(&function);
  if (!is_new || depth_ >= kDeepestCalls) return entry->second;
  ++depth_;
  entry->second = ShapeOperandFinder(*this).OfFunction(function);
  --depth_;
  return entry->second;
}

namespace {

using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::TypeProto;

// Comes first, so that a change of the definition changes every hash.
constexpr std::string_view kDefinition = "ckplan graph 1";

template <typename Proto>
std::vector<const Proto*> SortedByName(const google::protobuf::RepeatedPtrField<Proto>& list) {
  std::vector<const Proto*> sorted;
  for (const Proto& item : list) sorted.push_back(&item);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Proto* a, const Proto* b) { return a->name() < b->name(); });
  return sorted;
}

// Integers of these types are sizes, axes and conditions; narrower ones are quantized weights.
bool IsAlwaysRead(int32_t elem_type) {
  return elem_type == TensorProto::INT64 || elem_type == TensorProto::INT32 ||
         elem_type == TensorProto::BOOL;
}

// Every list and text begins with its length, so different graphs never give the same bytes.
class GraphHasher {
 public:
  explicit GraphHasher(const onnx::ModelProto& model) : model_(model), operands_(model) {}

  std::string Hash() {
    Text(kDefinition);
    Opsets(model_.opset_import());
    names_ = &operands_.InGraph();
    Graph(model_.graph());
    Functions();
    hash_.Update(pending_);
    return hash_.HexDigest();
  }

 private:
  // ---- Plain values -----------------------------------------------------------------------------

  void Number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) pending_ += static_cast<char>(value >> shift);
    constexpr size_t kPendingBytes = size_t{1} << 16;
    if (pending_.size() < kPendingBytes) return;
    hash_.Update(pending_);
    pending_.clear();
  }
  void Integer(int64_t value) { Number(static_cast<uint64_t>(value)); }
  void Real(double value) { Number(std::bit_cast<uint64_t>(value)); }
  void Text(std::string_view text) {
    Number(text.size());
    pending_ += text;
  }

  template <typename List, typename Write>
  void Each(const List& list, const Write& write) {
    Number(static_cast<uint64_t>(list.size()));
    for (const auto& item : list) write(item);
  }
  template <typename List>
  void Texts(const List& list) {
    Each(list, [this](const std::string& text) { Text(text); });
  }

  template <typename Imports>
  void Opsets(const Imports& imports) {
    std::map<std::string, int64_t> versions;
    for (const auto& import : imports) versions[PlainDomain(import.domain())] = import.version();
    Each(versions, [this](const auto& entry) {
      Text(entry.first);
      Integer(entry.second);
    });
  }

  // ---- Types ------------------------------------------------------------------------------------

  template <typename TensorType>
  void TensorOf(const TensorType& tensor) {
    Integer(tensor.elem_type());
    Number(tensor.has_shape() ? 1 : 0);
    Each(tensor.shape().dim(), [this](const auto& dim) {
      Number(static_cast<uint64_t>(dim.value_case()));
      Integer(dim.dim_value());
      Text(dim.dim_param());
    });
  }

  void Type(const TypeProto& type) {
    Number(static_cast<uint64_t>(type.value_case()));
    switch (type.value_case()) {
      case TypeProto::kTensorType:
        return TensorOf(type.tensor_type());
      case TypeProto::kSparseTensorType:
        return TensorOf(type.sparse_tensor_type());
      case TypeProto::kSequenceType:
        return Type(type.sequence_type().elem_type());
      case TypeProto::kOptionalType:
        return Type(type.optional_type().elem_type());
      case TypeProto::kMapType:
        Integer(type.map_type().key_type());
        return Type(type.map_type().value_type());
      case TypeProto::kOpaqueType:
        Text(type.opaque_type().domain());
        return Text(type.opaque_type().name());
      case TypeProto::VALUE_NOT_SET:
        return;
    }
  }

  // ---- Tensors ----------------------------------------------------------------------------------

  template <typename ListOfDims>
  void TensorShape(const TensorProto& tensor, const ListOfDims& dims) {
    Integer(tensor.data_type());
    Each(dims, [this](int64_t dim) { Integer(dim); });
  }

  void Tensor(const TensorProto& tensor, bool is_operand) {
    TensorShape(tensor, tensor.dims());
    const auto value =
        is_operand || IsAlwaysRead(tensor.data_type()) ? ReadTensor(tensor) : std::nullopt;
    Number(value.has_value() ? 1 : 0);
    if (!value.has_value()) return;
    Each(value->ints, [this](int64_t element) { Integer(element); });
    Each(value->reals, [this](double element) { Real(element); });
  }

  void Sparse(const onnx::SparseTensorProto& sparse) {
    Text(sparse.values().name());
    TensorShape(sparse.values(), sparse.dims());
    const bool is_operand = IsAlwaysRead(sparse.values().data_type()) ||
                            (names_ != nullptr && names_->contains(sparse.values().name()));
    const auto value = is_operand ? ReadSparse(sparse) : std::nullopt;
    if (!value.has_value()) return;
    Each(value->ints, [this](int64_t element) { Integer(element); });
    Each(value->reals, [this](double element) { Real(element); });
  }

  void Initializers(const GraphProto& graph) {
    Each(SortedByName(graph.initializer()), [this](const TensorProto* tensor) {
      Text(tensor->name());
      Tensor(*tensor, names_->contains(tensor->name()));
    });
    Each(graph.sparse_initializer(), [this](const auto& sparse) { Sparse(sparse); });
  }

  // ---- Nodes ------------------------------------------------------------------------------------

  void Attribute(const AttributeProto& attribute, bool is_operand) {
    Text(attribute.name());
    Text(attribute.ref_attr_name());
    Integer(attribute.type());
    Real(static_cast<double>(attribute.f()));
    Integer(attribute.i());
    Text(attribute.s());
    Each(attribute.floats(), [this](float value) { Real(static_cast<double>(value)); });
    Each(attribute.ints(), [this](int64_t value) { Integer(value); });
    Texts(attribute.strings());
    Tensor(attribute.t(), is_operand);
    Each(attribute.tensors(), [&](const TensorProto& tensor) { Tensor(tensor, is_operand); });
    Sparse(attribute.sparse_tensor());
    Each(attribute.sparse_tensors(), [this](const auto& sparse) { Sparse(sparse); });
    Type(attribute.tp());
    Each(attribute.type_protos(), [this](const TypeProto& type) { Type(type); });
    Number(attribute.has_g() ? 1 : 0);
    if (attribute.has_g()) Graph(attribute.g());
    Each(attribute.graphs(), [this](const GraphProto& graph) { Graph(graph); });
  }

  void Node(const NodeProto& node) {
    Text(node.name());
    Text(PlainDomain(node.domain()));
    Text(node.op_type());
    Text(node.overload());
    Texts(node.input());
    Texts(node.output());
    const bool is_operand =
        std::any_of(node.output().begin(), node.output().end(),
                    [this](const std::string& name) { return names_->contains(name); });
    Each(SortedByName(node.attribute()),
         [&](const AttributeProto* attribute) { Attribute(*attribute, is_operand); });
  }

  void Nodes(const google::protobuf::RepeatedPtrField<NodeProto>& nodes) {
    Each(nodes, [this](const NodeProto& node) { Node(node); });
  }

  // ---- Graphs -----------------------------------------------------------------------------------

  void Declared(const onnx::ValueInfoProto& info) {
    Text(info.name());
    Type(info.type());
  }
  void Declarations(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& infos) {
    Each(SortedByName(infos), [this](const onnx::ValueInfoProto* info) { Declared(*info); });
  }

  // Old files list their initializers among the inputs.
  void Inputs(const GraphProto& graph) {
    std::unordered_set<std::string> initializers;
    for (const TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
    std::vector<const onnx::ValueInfoProto*> inputs;
    for (const onnx::ValueInfoProto& input : graph.input()) {
      if (!initializers.contains(input.name())) inputs.push_back(&input);
    }
    Each(inputs, [this](const onnx::ValueInfoProto* input) { Declared(*input); });
  }

  void Graph(const GraphProto& graph) {
    Text(graph.name());
    Inputs(graph);
    Each(graph.output(), [this](const auto& output) { Declared(output); });
    Declarations(graph.value_info());
    Initializers(graph);
    Nodes(graph.node());
  }

  void Functions() {
    std::vector<const FunctionProto*> functions = SortedByName(model_.functions());
    std::stable_sort(functions.begin(), functions.end(), [](const auto* a, const auto* b) {
      return std::tie(PlainDomain(a->domain()), a->name(), a->overload()) <
             std::tie(PlainDomain(b->domain()), b->name(), b->overload());
    });
    Each(functions, [this](const FunctionProto* function) { Function(*function); });
  }

  void Function(const FunctionProto& function) {
    Text(PlainDomain(function.domain()));
    Text(function.name());
    Text(function.overload());
    Opsets(function.opset_import());
    Texts(function.input());
    Texts(function.output());
    Texts(function.attribute());
    names_ = &operands_.InFunction(function);
    Each(SortedByName(function.attribute_proto()),
         [this](const AttributeProto* attribute) { Attribute(*attribute, true); });
    Declarations(function.value_info());
    Nodes(function.node());
  }

  const onnx::ModelProto& model_;
  ShapeOperands operands_;
  const ShapeOperands::Names* names_ = nullptr;  // Names in the current body.
  Sha256 hash_;
  std::string pending_;
};

}  // namespace

std::string GraphHash(const onnx::ModelProto& model) { return GraphHasher(model).Hash(); }

}  // namespace ckplan
