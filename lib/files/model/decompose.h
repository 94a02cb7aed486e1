// Replaces operators that ONNX Runtime's optimizers write (com.microsoft), and a few of ai.onnx.ml,
// by equivalent ONNX operators:
//
//   y = SkipLayerNormalization(x, skip, g, b)
//   becomes   s = Add(x, skip)   y = LayerNormalization(s, g, b)
//
// Shapes, costs, backward reads and the code that ckexec runs then follow from ONNX's own
// operators. An ONNX operator newer than the file's operator set, such as LayerNormalization in
// files of that optimizer, is taken from the newest set.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/files/model/constant.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"

namespace ckplan {

struct Decomposition {
  // They read the node's operands by OperandName, and each other's results.
  std::vector<onnx::NodeProto> nodes;
  std::vector<std::string> outputs;  // Which of their results are the node's outputs.

  // What it assumes, for a warning, and the operand whose unknown contents would tell.
  struct Assumption {
    std::string text;
    std::optional<size_t> operand;
  };
  std::vector<Assumption> assumptions;
};

// Returns nullopt for an unknown operator or an unsupported use.
std::optional<Decomposition> Decompose(const Model::Impl& model, const onnx::NodeProto& node,
                                       const std::vector<ValueIndex>& inputs);

// True if Decompose supports the operator, in at least some uses.
bool IsDecomposed(const onnx::NodeProto& node);

std::string OperandName(size_t position);

// The operator sets of the nodes.
const OpsetVersions& DecompositionOpsets();

// Builds the nodes of a decomposition.
class DecompositionBuilder {
 public:
  using Attributes = std::vector<onnx::AttributeProto>;

  DecompositionBuilder(const Model::Impl& model, const onnx::NodeProto& node,
                       const std::vector<ValueIndex>& inputs)
      : model_(model), node_(node), inputs_(inputs) {
    made_.outputs.resize(static_cast<size_t>(node.output_size()));
  }

  const onnx::NodeProto& node() const { return node_; }
  // True if the operand exists and its shape is known.
  bool HasInput(size_t input) const {
    return input < inputs_.size() && inputs_[input] != kNoValue &&
           model_.value(inputs_[input]).has_shape;
  }
  bool HasOutput(size_t output) const {
    return output < made_.outputs.size() && !node_.output(static_cast<int>(output)).empty();
  }
  const Dims& DimsOf(size_t input) const { return model_.value(inputs_[input]).dims; }
  int32_t TypeOf(size_t input) const { return model_.value(inputs_[input]).elem_type; }
  // Returns the only number of an operand, if its contents are known.
  std::optional<int64_t> KnownNumber(size_t input) const {
    if (!HasInput(input)) return std::nullopt;
    const ConstantValue* contents = model_.value(inputs_[input]).constant.get();
    if (contents == nullptr || contents->ints.size() != 1) return std::nullopt;
    return contents->ints[0];
  }
  std::string Operand(size_t input) const {
    return input < inputs_.size() && inputs_[input] != kNoValue ? OperandName(input) : "";
  }

  // Adds a node, and returns the name of its first output, which ends with `what`. The operator's
  // name includes its domain, if it isn't ONNX's.
  std::string Do(const char* op, std::vector<std::string> inputs, const std::string& what,
                 Attributes attributes = {});
  // Adds a node with several outputs, and returns their names.
  std::vector<std::string> DoSeveral(const char* op, std::vector<std::string> inputs,
                                     const std::vector<std::string>& what,
                                     Attributes attributes = {});
  // Adds a node that produces the decomposed node's outputs from 0 on; "" omits an input.
  void Finish(const char* op, std::vector<std::string> inputs, Attributes attributes = {},
              size_t outputs = 1);
  // Makes `name` an output of the decomposed node.
  void Output(size_t position, const std::string& name) {
    if (HasOutput(position)) made_.outputs[position] = name;
  }

  void Assume(std::string text, std::optional<size_t> operand = std::nullopt) {
    made_.assumptions.push_back({std::move(text), operand});
  }

  std::string Ints(const std::vector<int64_t>& list, const std::string& what);
  // A number of the same type as an operand.
  std::string Number(double number, size_t like, const std::string& what);
  std::string Constant(const ConstantValue& value, const std::string& what);

  // Copies an attribute of the decomposed node, if present.
  void Copy(const char* name, Attributes* attributes, const char* as = nullptr) const;

  static onnx::AttributeProto Int(const char* name, int64_t value);
  static onnx::AttributeProto IntList(const char* name, const std::vector<int64_t>& values);
  static onnx::AttributeProto Float(const char* name, double value);
  static onnx::AttributeProto Text(const char* name, const std::string& value);

  // Returns nullopt if one of the node's outputs is missing.
  std::optional<Decomposition> Take() &&;

 private:
  std::string NameOf(const std::string& what) const;
  onnx::NodeProto& AddNode(const char* op, std::vector<std::string> inputs, Attributes attributes,
                           const std::string& what);

  const Model::Impl& model_;
  const onnx::NodeProto& node_;
  const std::vector<ValueIndex>& inputs_;
  Decomposition made_;
};

// Attention operators of ONNX Runtime's optimizers, as ONNX's own Attention.

// Each returns false if this use is unsupported.
bool MakeAttention(DecompositionBuilder& m);
bool MakeMultiHeadAttention(DecompositionBuilder& m);
bool MakeGroupQueryAttention(DecompositionBuilder& m);
bool MakeRotaryEmbedding(DecompositionBuilder& m);

}  // namespace ckplan
