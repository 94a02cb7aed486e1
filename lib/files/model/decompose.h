// Operators that ONNX Runtime's optimizers write (com.microsoft), as the operators of ONNX that
// they stand for:
//
//   y = SkipLayerNormalization(x, skip, g, b)    is    s = Add(x, skip)   y = LayerNormalization(s,
//   g, b)
//
// So shapes, costs, what backward reads, and what ckexec runs follow from ONNX's own operators. An
// operator of ONNX that is newer than the file's operator set, as LayerNormalization is in the
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
  // They read the operands of the node by OperandName, and each other's results.
  std::vector<onnx::NodeProto> nodes;
  std::vector<std::string> outputs;  // The names of the node's outputs among theirs.
};

// Returns nothing for an operator that is not known, or is used in a way that has no such form.
std::optional<Decomposition> Decompose(const Model::Impl& model, const onnx::NodeProto& node,
                                       const std::vector<ValueIndex>& inputs);

// Returns whether the operator is one that may be replaced, in a use of it that has such a form.
bool IsDecomposed(const onnx::NodeProto& node);

std::string OperandName(size_t position);

// The operator sets of the nodes.
const OpsetVersions& DecompositionOpsets();

// Makes the nodes of a decomposition (decompose.h).
class DecompositionBuilder {
 public:
  using Attributes = std::vector<onnx::AttributeProto>;

  DecompositionBuilder(const Model::Impl& model, const onnx::NodeProto& node,
                       const std::vector<ValueIndex>& inputs)
      : model_(model), node_(node), inputs_(inputs) {
    made_.outputs.resize(static_cast<size_t>(node.output_size()));
  }

  const onnx::NodeProto& node() const { return node_; }
  // Returns whether the operand is there, and its shape is known.
  bool Has(size_t input) const {
    return input < inputs_.size() && inputs_[input] != kNoValue &&
           model_.value(inputs_[input]).has_shape;
  }
  bool Wants(size_t output) const {
    return output < made_.outputs.size() && !node_.output(static_cast<int>(output)).empty();
  }
  const Dims& DimsOf(size_t input) const { return model_.value(inputs_[input]).dims; }
  int32_t TypeOf(size_t input) const { return model_.value(inputs_[input]).elem_type; }
  // Returns the only number of an operand, if its contents are known.
  std::optional<int64_t> KnownNumber(size_t input) const {
    if (!Has(input)) return std::nullopt;
    const ConstantValue* contents = model_.value(inputs_[input]).constant.get();
    if (contents == nullptr || contents->ints.size() != 1) return std::nullopt;
    return contents->ints[0];
  }
  std::string Operand(size_t input) const {
    return input < inputs_.size() && inputs_[input] != kNoValue ? OperandName(input) : "";
  }

  // Adds a node, and returns the name of its first output, which ends with `what`.
  std::string Do(const char* op, std::vector<std::string> inputs, const std::string& what,
                 Attributes attributes = {});
  // Returns the names of all outputs.
  std::vector<std::string> DoSeveral(const char* op, std::vector<std::string> inputs,
                                     const std::vector<std::string>& what,
                                     Attributes attributes = {});
  // Adds a node that makes outputs of the decomposed one, from output 0 on; "" leaves one out.
  void Finish(const char* op, std::vector<std::string> inputs, Attributes attributes = {},
              size_t outputs = 1);
  // Makes `name` an output of the decomposed node.
  void Output(size_t position, const std::string& name) {
    if (Wants(position)) made_.outputs[position] = name;
  }

  std::string Ints(const std::vector<int64_t>& list, const std::string& what);
  // A number of the type of an operand.
  std::string Number(double number, size_t like, const std::string& what);
  std::string Constant(const ConstantValue& value, const std::string& what);

  // Copies an attribute of the decomposed node, if it has it.
  void Copy(const char* name, Attributes* attributes, const char* as = nullptr) const;

  static onnx::AttributeProto Int(const char* name, int64_t value);
  static onnx::AttributeProto IntList(const char* name, const std::vector<int64_t>& values);
  static onnx::AttributeProto Float(const char* name, double value);
  static onnx::AttributeProto Text(const char* name, const std::string& value);

  // Returns nothing if an output that the node has was not made.
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

// The attentions of ONNX Runtime's optimizer, as ONNX's own Attention: see decompose.h.

// Each returns false for a use that has no such form.
bool MakeAttention(DecompositionBuilder& m);
bool MakeMultiHeadAttention(DecompositionBuilder& m);
bool MakeGroupQueryAttention(DecompositionBuilder& m);
bool MakeRotaryEmbedding(DecompositionBuilder& m);

}  // namespace ckplan
