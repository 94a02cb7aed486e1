#include "lib/files/model/infer_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "lib/base/stop.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/hinted_types.h"
#include "lib/files/model/operation_faults.h"
#include "lib/problem/ops/sliding.h"
#include "onnx/defs/schema.h"
#include "onnx/shape_inference/implementation.h"

namespace ckplan {
namespace {

using onnx::TensorProto;

// Contents are provided only in types that ONNX's rules read.
bool IsReadByRules(int32_t elem_type) {
  return elem_type == TensorProto::INT64 || elem_type == TensorProto::INT32 ||
         elem_type == TensorProto::FLOAT || elem_type == TensorProto::DOUBLE ||
         elem_type == TensorProto::BOOL;
}

class NodeContext final : public onnx::InferenceContext {
 public:
  // `first` replaces the type of the first input, if set.
  NodeContext(const Model::Impl& model, const ModelOperation& operation,
              const onnx::TypeProto* first)
      : model_(model),
        operation_(operation),
        first_(first),
        data_(operation.inputs.size()),
        outputs_(operation.outputs.size()) {}

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return FindAttribute(*operation_.node, name);
  }
  size_t getNumInputs() const override { return operation_.inputs.size(); }
  const onnx::TypeProto* getInputType(size_t index) const override {
    // ONNX's own context also throws here, and its rules rely on this for damaged files.
    if (index >= operation_.inputs.size()) fail_type_inference("it has no input ", index);
    if (index == 0 && first_ != nullptr) return first_;
    const ModelValue* value = InputAt(index);
    return value == nullptr || value->type.value_case() == onnx::TypeProto::VALUE_NOT_SET
               ? nullptr
               : &value->type;
  }
  bool hasInput(size_t index) const override { return InputAt(index) != nullptr; }
  const TensorProto* getInputData(size_t index) const override {
    if (index >= operation_.inputs.size()) fail_type_inference("it has no input ", index);
    const ModelValue* value = InputAt(index);
    if (value == nullptr || value->constant == nullptr ||
        !IsReadByRules(value->constant->elem_type)) {
      return nullptr;
    }
    if (!data_[index].has_value()) {
      data_[index] = MakeTensor(*value->constant);
      // ONNX requires scalars here, but its own functions and runtimes take lists of one number.
      if (operation_.type() == "Range" && value->constant->size() == 1) data_[index]->clear_dims();
    }
    return &*data_[index];
  }
  size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(size_t index) override {
    if (index >= outputs_.size()) fail_type_inference("it has no output ", index);
    return &outputs_[index];
  }
  bool hasOutput(size_t index) override {
    return index < operation_.outputs.size() && operation_.outputs[index] != kNoValue;
  }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string& name) override {
    fail_type_inference("attribute ", name, " holds a graph");
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }
  std::string getDisplayName() const override { return operation_.name; }

  std::vector<onnx::TypeProto> TakeOutputs() { return std::move(outputs_); }

 private:
  const ModelValue* InputAt(size_t index) const {
    const ValueIndex value = operation_.input(index);
    return value == kNoValue ? nullptr : &model_.value(value);
  }

  const Model::Impl& model_;
  const ModelOperation& operation_;
  const onnx::TypeProto* first_;
  mutable std::vector<std::optional<TensorProto>> data_;  // Created on demand.
  std::vector<onnx::TypeProto> outputs_;
};

// ONNX prefixes its messages with the kind of error, once per enclosing function.
std::string StripKind(std::string_view text) {
  while (text.starts_with('[') && text.find("] ") < text.find(' ')) {
    text.remove_prefix(text.find("] ") + 2);
  }
  return std::string(text);
}

void RunRule(const ModelOperation& operation, NodeContext& context) {
  const onnx::OpSchema& schema = *operation.schema;
  if (schema.has_type_and_shape_inference_function()) {
    schema.GetTypeAndShapeInferenceFunction()(context);
  } else if (schema.HasFunction()) {
    onnx::shape_inference::InferShapeForFunctionNode(*schema.GetFunction(),
                                                     onnx::OpSchemaRegistry::Instance(), context);
  }
}

// True if the output always has the first input's type, although ONNX has no rule for it or, for
// MeanVarianceNormalization before opset 13, a function that its own rules reject.
bool KeepsType(const ModelOperation& operation) {
  return operation.type() == "GroupNormalization" ||
         operation.type() == "MeanVarianceNormalization";
}

// Adds shapes that ONNX's rules leave open. A normalised output has its input's type, and so has
// the mask of Dropout before opset 10; since then the mask is boolean.
void AddKnownShapes(const Model::Impl& model, const ModelOperation& operation,
                    std::vector<onnx::TypeProto>& outputs) {
  const bool is_dropout = operation.type() == "Dropout";
  if (!is_dropout && !KeepsType(operation)) return;
  const size_t position = is_dropout ? 1 : 0;
  if (operation.input(0) == kNoValue || outputs.size() <= position) return;
  if (IsFullTensor(outputs[position])) return;
  outputs[position] = model.value(operation.inputs[0]).type;
  if (!is_dropout || operation.schema->since_version() < 10) return;
  outputs[position].mutable_tensor_type()->set_elem_type(TensorProto::BOOL);
}

// True if an input has no type because an unknown operator produces it. Some ONNX rules read an
// input's type without checking that it exists.
bool HasUntypedInput(const Model::Impl& model, const ModelOperation& operation) {
  return std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](ValueIndex input) {
    return input != kNoValue &&
           model.value(input).type.value_case() == onnx::TypeProto::VALUE_NOT_SET;
  });
}

// Finds a negative size, which ONNX's rules give for a window larger than its input.
std::string NegativeSizeFault(const std::vector<onnx::TypeProto>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& shape = outputs[i].tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      if (shape.dim(axis).dim_value() >= 0) continue;
      return fmt::format("axis {} of output {} would have {} elements", axis, i,
                         shape.dim(axis).dim_value());
    }
  }
  return "";
}

// Corrects ONNX's rules for pools with ceil_mode: one window too many if it would start in the
// padding (before operator set 22), or if auto_pad is SAME and strides exceed the kernel.
void CorrectCeilMode(const ModelOperation& operation, const Dims& in,
                     std::vector<onnx::TypeProto>& outputs) {
  const std::string& type = operation.schema->Name();
  if (type != "AveragePool" && type != "MaxPool" && type != "LpPool") return;
  if (IntAttribute(*operation.node, "ceil_mode", 0) == 0) return;
  const bool is_same = StringAttribute(*operation.node, "auto_pad", "NOTSET").starts_with("SAME");
  const std::vector<int64_t> strides = IntsAttribute(*operation.node, "strides");
  const std::vector<int64_t> pads = IntsAttribute(*operation.node, "pads");
  for (onnx::TypeProto& output : outputs) {
    if (!IsFullTensor(output)) continue;
    auto& shape = *output.mutable_tensor_type()->mutable_shape();
    for (size_t axis = 2; axis < in.size() && static_cast<int>(axis) < shape.dim_size(); ++axis) {
      const size_t i = axis - 2;
      const int64_t stride = i < strides.size() ? strides[i] : 1;
      const int64_t begin = i < pads.size() ? pads[i] : 0;
      auto& dim = *shape.mutable_dim(static_cast<int>(axis));
      dim.set_dim_value(is_same ? (in[axis] - 1) / stride + 1
                                : DropWindowInPadding(dim.dim_value(), stride, in[axis], begin));
    }
  }
}

// Runs ONNX's rule. `first` replaces the type of the first input, if set.
InferredTypes InferByRule(const Model::Impl& model, const ModelOperation& operation,
                          const onnx::TypeProto* first = nullptr) {
  InferredTypes inferred;
  inferred.outputs.resize(operation.outputs.size());
  inferred.fault = AttributeFault(model, operation);
  if (!inferred.fault.empty() || HasUntypedInput(model, operation)) return inferred;
  NodeContext context(model, operation, first);
  if (KeepsType(operation)) {
    AddKnownShapes(model, operation, inferred.outputs);
    return inferred;
  }
  const std::string what = fmt::format("the shape inference of node \"{}\" ({})",
                                       ShortName(operation.name), ShortName(operation.type()));
  try {
    const UnpolledCall call(what);
    RunRule(operation, context);
    inferred.outputs = context.TakeOutputs();
    inferred.fault = NegativeSizeFault(inferred.outputs);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {
    inferred.fault = StripKind(fault.what());
  }
  AddKnownShapes(model, operation, inferred.outputs);
  if (operation.input(0) == kNoValue) return inferred;
  Dims in = model.value(operation.inputs[0]).dims;
  if (first != nullptr) {
    in.clear();
    for (const auto& dim : first->tensor_type().shape().dim()) in.push_back(dim.dim_value());
  }
  CorrectCeilMode(operation, in, inferred.outputs);
  return inferred;
}

// Infers the types of a quantized operator's results by the rule of its twin. If channels come
// last, the rule sees them in second place.
InferredTypes InferAsTwin(const Model::Impl& model, const ModelOperation& operation,
                          const FloatTwin& twin) {
  constexpr int kOpset = 13;
  constexpr size_t kScaleOfGemm = 7;
  ModelOperation like = operation;
  like.schema = onnx::OpSchemaRegistry::Schema(twin.twin, kOpset, "");
  like.inputs.clear();
  for (const int input : twin.inputs) {
    if (input >= 0) like.inputs.push_back(operation.input(static_cast<size_t>(input)));
  }
  const auto distance = static_cast<size_t>(twin.next);
  for (size_t i = static_cast<size_t>(twin.inputs[0]) + distance;
       distance > 0 && i < operation.inputs.size(); i += distance) {
    like.inputs.push_back(operation.inputs[i]);
  }
  const bool is_known = like.input(0) != kNoValue && model.value(like.inputs[0]).has_shape;
  if (!is_known) return {std::vector<onnx::TypeProto>(operation.outputs.size()), ""};
  const std::string& kind = like.schema->Name();
  const bool may_be_last = kind == "AveragePool" || kind == "GlobalAveragePool" || kind == "Conv";
  const bool has_channels_last =
      operation.type() == "NhwcMaxPool" ||
      (may_be_last && IntAttribute(*operation.node, "channels_last", 0) != 0);
  onnx::TypeProto first = model.value(like.inputs[0]).type;
  auto* dims = first.mutable_tensor_type()->mutable_shape()->mutable_dim();
  for (int axis = dims->size() - 1; axis > 1; --axis) dims->SwapElements(axis, axis - 1);
  InferredTypes inferred = InferByRule(model, like, has_channels_last ? &first : nullptr);
  if (inferred.outputs.empty() || !IsFullTensor(inferred.outputs[0])) return inferred;
  auto& type = *inferred.outputs[0].mutable_tensor_type();
  auto* made = type.mutable_shape()->mutable_dim();
  for (int axis = 1; has_channels_last && axis + 1 < made->size(); ++axis) {
    made->SwapElements(axis, axis + 1);
  }
  const bool is_float = operation.type() == "QGemm" && operation.input(kScaleOfGemm) == kNoValue;
  if (is_float) type.set_elem_type(TensorProto::FLOAT);
  return inferred;
}

}  // namespace

onnx::TypeProto TensorOfType(int32_t elem_type, const Dims& dims) {
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(elem_type);
  auto* shape = type.mutable_tensor_type()->mutable_shape();
  for (const int64_t dim : dims) shape->add_dim()->set_dim_value(dim);
  return type;
}

bool IsFullTensor(const onnx::TypeProto& type) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return false;
  if (type.tensor_type().elem_type() == TensorProto::UNDEFINED) return false;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) return false;
  }
  return true;
}

InferredTypes InferTypes(const Model::Impl& model, const ModelOperation& operation) {
  const bool is_described =
      IsDescribable(operation) && GivenHintFor(model, *operation.node) != nullptr;
  const bool is_hinted = is_described || HasBuiltInHint(*operation.node);
  if (operation.schema != nullptr && !is_hinted) return InferByRule(model, operation);
  InferredTypes inferred{std::vector<onnx::TypeProto>(operation.outputs.size()),
                         ContribFault(model, operation)};
  if (!inferred.fault.empty()) return inferred;
  const FloatTwin* twin = is_described ? nullptr : TwinOf(*operation.node);
  if (twin != nullptr) return InferAsTwin(model, operation, *twin);
  inferred.outputs = HintedTypes(model, operation);
  return inferred;
}

namespace {

constexpr size_t kShown = 3;

const onnx::TypeProto* DeclaredAs(const std::string& name, const Scope& scope) {
  const auto found = scope.declared->find(name);
  return found == scope.declared->end() ? nullptr : found->second;
}

bool AreContradictory(const onnx::TypeProto& a, const onnx::TypeProto& b) {
  if (!a.has_tensor_type() || !b.has_tensor_type()) return false;
  const auto& one = a.tensor_type();
  const auto& other = b.tensor_type();
  if (one.elem_type() != 0 && other.elem_type() != 0 && one.elem_type() != other.elem_type()) {
    return true;
  }
  if (!one.has_shape() || !other.has_shape()) return false;
  const auto& dims = one.shape().dim();
  const auto& other_dims = other.shape().dim();
  return !std::equal(dims.begin(), dims.end(), other_dims.begin(), other_dims.end(),
                     [](const auto& dim, const auto& other_dim) {
                       return !dim.has_dim_value() || !other_dim.has_dim_value() ||
                              dim.dim_value() == other_dim.dim_value();
                     });
}

std::string TextOf(const onnx::TypeProto& type) {
  if (!type.tensor_type().has_shape()) return TypeText(type.tensor_type().elem_type(), {}) + "?";
  Dims dims;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    dims.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  }
  return TypeText(type.tensor_type().elem_type(), dims);
}

// A function may be called with shapes other than those it declares.
bool IsInFunction(const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    if (at->attributes != nullptr) return true;
  }
  return false;
}

}  // namespace

bool HasOtherShapes(const BoundDims& bound) {
  return std::any_of(bound.inputs.begin(), bound.inputs.end(), [](const BoundInput& input) {
    return AreContradictory(input.input->type(), input.type);
  });
}

// If an input's shape differs from the file's, all declared types of the file are outdated.
TypeChooser::TypeChooser(const BoundDims& bound)
    : bound_(bound), compares_(!HasOtherShapes(bound)) {}

onnx::TypeProto TypeChooser::Choose(const std::string& name, const Scope& scope,
                                    const ModelOperation& operation, const onnx::TypeProto& made) {
  const onnx::TypeProto* declared = DeclaredAs(name, scope);
  if (declared == nullptr) return made;
  onnx::TypeProto planned = made;
  if (!IsFullTensor(made)) {
    // Declared types are often wrong, so they are used only if no inferred type is known.
    onnx::TypeProto filled = *declared;
    if (FillDims(filled, bound_.dims) && IsFullTensor(filled)) planned = std::move(filled);
  }
  Compare(name, scope, fmt::format("{} \"{}\"", operation.type(), ShortName(operation.name)), made,
          planned);
  return planned;
}

void TypeChooser::Compare(const std::string& name, const Scope& scope, const std::string& producer,
                          const onnx::TypeProto& made, const onnx::TypeProto& planned) {
  const onnx::TypeProto* declared = DeclaredAs(name, scope);
  if (!compares_ || declared == nullptr || IsInFunction(scope)) return;
  // Compares only numbers, because exporters give dimensions of different sizes the same name.
  if (!AreContradictory(*declared, made)) return;
  contradictions_.push_back(fmt::format("\"{}\" (declared {}, made {} by {}, planned {})",
                                        ShortName(name), TextOf(*declared), TextOf(made), producer,
                                        TextOf(planned)));
}

std::string TypeChooser::Warning() const {
  if (contradictions_.empty()) return "";
  return fmt::format(
      "the file's declared types contradict the types that operators produce: {}; "
      "infer the model's shapes again, or remove its declared types",
      ShortList(contradictions_, kShown));
}

}  // namespace ckplan
