#include "lib/files/model/shape_operands.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "lib/files/model/constant.h"
#include "lib/files/model/fold.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int kDeepestCalls = 64;  // Models with more deeply nested calls are refused.

// An operator that has float inputs on which the shape of its output depends, or on which it
// depends whether the output is a view: those from `first_input` on.
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

// Returns whether integers or booleans are folded from operands of any type.
bool MakesIntegers(const NodeProto& node) {
  static constexpr std::string_view kOps[] = {
      "CastLike", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NonZero"};
  if (node.op_type() != "Cast") {
    return std::find(std::begin(kOps), std::end(kOps), node.op_type()) != std::end(kOps);
  }
  return !IsFloatType(static_cast<int32_t>(IntAttribute(node, "to", 0)));
}

// Returns whether the result does not depend on the contents of any input.
bool IsAlwaysConstant(const NodeProto& node) {
  return node.op_type() == "Constant" || node.op_type() == "Shape" || node.op_type() == "Size";
}

}  // namespace

// Searches one body: the main graph or a function, with the branches inside.
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

  // The contents of a node come before it.
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

}  // namespace ckplan
