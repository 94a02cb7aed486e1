// The contents of a loaded model. Only for lib/files/model.
//
// The graph is flat: function calls and branches of Ifs with a known condition are expanded in
// place. Values and operations are identified by index; names are only for messages.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/files/model/constant.h"
#include "lib/files/model/model.h"
#include "lib/files/model/step_part.h"
#include "lib/problem/ops/op_hint.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// The functions that a model defines, by name.
class ModelFunctions {
 public:
  explicit ModelFunctions(const onnx::ModelProto& model);

  // Returns the function that the node calls; null if the node is an operator.
  const onnx::FunctionProto* Find(const onnx::NodeProto& node) const;
  bool empty() const { return functions_.empty(); }

 private:
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
};

using CallAttributes = std::unordered_map<std::string, const onnx::AttributeProto*>;

// True if one of the node's attributes is a graph: a branch or the body of a loop.
bool HoldsGraph(const onnx::NodeProto& node);
// True if the node, inside a function, may refer to attributes of the function's call.
bool NeedsBinding(const onnx::NodeProto& node);
// Replaces references by the attributes of the enclosing function's call, and removes those that
// the call omits.
void BindAttributes(onnx::NodeProto& node, const CallAttributes& attributes);

// Returns the domain, with "ai.onnx" replaced by the equivalent empty name.
const std::string& PlainDomain(const std::string& domain);
bool IsStandard(const onnx::NodeProto& node);

using ValueIndex = int32_t;
inline constexpr ValueIndex kNoValue = -1;  // An omitted optional input or output.

struct ModelValue {
  enum class Source { kGraphInput, kInitializer, kOperation };

  std::string name;  // Unique.
  Source source = Source::kOperation;
  onnx::TypeProto type;
  bool has_shape = false;  // `elem_type`, `dims` and `bytes` are known.
  int32_t elem_type = 0;
  Dims dims;
  Bytes bytes;
  int32_t producer = -1;                           // Index into `operations`, for kOperation.
  const onnx::TensorProto* initializer = nullptr;  // Set for kInitializer.
  std::unique_ptr<ConstantValue> constant;         // The contents, if known and small.
  bool is_frozen = false;                          // A parameter that is not trained: see freeze.h.
  // What the file's signature says about an initializer: see signature.h.
  enum class Signature : uint8_t { kUnknown, kParameter, kConstant };
  Signature signature = Signature::kUnknown;
};

struct ModelOperation {
  std::string name;  // Unique: the node's own name, else "Conv:out", with a suffix if needed.
  const onnx::NodeProto* node = nullptr;   // Attributes of an enclosing function are filled in.
  const onnx::OpSchema* schema = nullptr;  // Null if the operator is unknown.
  int32_t file_node = 0;                   // Index of its node in the file's main graph.
  int64_t opset = 0;                       // For made operations; 0 means the model's.
  std::vector<ValueIndex> inputs;          // In the node's order; kNoValue if omitted.
  std::vector<ValueIndex> outputs;

  const std::string& type() const { return node->op_type(); }
  bool is_standard() const { return IsStandard(*node); }
  ValueIndex input(size_t i) const { return i < inputs.size() ? inputs[i] : kNoValue; }
  ValueIndex output(size_t i) const { return i < outputs.size() ? outputs[i] : kNoValue; }
};

struct Model::Impl {
  // The file's message, without the contents of large tensors.
  std::unique_ptr<onnx::ModelProto> proto;
  std::deque<onnx::NodeProto> made_nodes;  // Nodes of expanded calls and branches.
  std::vector<ModelValue> values;
  std::vector<ModelOperation> operations;  // In the order in which they run.
  std::vector<ValueIndex> graph_inputs;    // Inputs that are not initializers.
  std::vector<ValueIndex> graph_outputs;
  ModelIdentity identity;
  DimSizes dims;  // The sizes of symbolic dimensions.
  // Determines the `bytes` of values.
  ActivationType activation_type = ActivationType::kOfModel;
  Rounding rounding = Rounding::kStraightThrough;
  std::vector<std::string> warnings;
  std::vector<RestoredOperation> restored;  // See Model::restored.
  bool is_captured = false;                 // Read with RestoredOperators::kCaptured.
  bool tells_in_place = false;              // The file marks operations in place: eager_notes.h.
  bool has_signature = false;               // The file lists its parameters: see signature.h.
  std::optional<int64_t> constant_batch;    // See Model::constant_batch.
  StepPart part;                            // The part of the file's main graph that is read.
  std::vector<OpHint> op_hints;             // The user's descriptions of unknown operators.
  // The float outputs of the part that depend on nothing unknown. Set when the graph is expanded,
  // even if expanding fails because of others.
  std::vector<std::string> live_outputs;
  // If no output can be trained: earlier values that can be, which could be outputs instead.
  std::vector<std::string> trainable_ends;
  // The main graph's names of values that have another name in a branch, function or decomposition.
  std::map<ValueIndex, std::string> main_names;

  const ModelValue& value(ValueIndex i) const { return values[static_cast<size_t>(i)]; }
  ModelValue& value(ValueIndex i) { return values[static_cast<size_t>(i)]; }
};

// Return a node's attribute or, if missing, the default of the operator's schema.
const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, std::string_view name);
int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, int64_t otherwise);
double FloatAttribute(const onnx::NodeProto& node, std::string_view name, double otherwise);
std::string StringAttribute(const onnx::NodeProto& node, std::string_view name,
                            std::string_view otherwise);
std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, std::string_view name);

}  // namespace ckplan
