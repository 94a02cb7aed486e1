#include "lib/files/model/declared_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/files/model/infer_types.h"

namespace ckplan {

namespace {

constexpr size_t kShown = 3;

const onnx::TypeProto* DeclaredAs(const std::string& name, const Scope& scope) {
  const auto found = scope.declared->find(name);
  return found == scope.declared->end() ? nullptr : found->second;
}

bool Contradict(const onnx::TypeProto& a, const onnx::TypeProto& b) {
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

// A function may be called with other shapes than those it declares.
bool IsInFunction(const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    if (at->attributes != nullptr) return true;
  }
  return false;
}

}  // namespace

bool HasOtherShapes(const BoundDims& bound) {
  return std::any_of(bound.inputs.begin(), bound.inputs.end(), [](const BoundInput& input) {
    return Contradict(input.input->type(), input.type);
  });
}

// If an input is given another shape than in the file, all declared types of the file are outdated.
TypeChooser::TypeChooser(const BoundDims& bound)
    : bound_(bound), compares_(!HasOtherShapes(bound)) {}

onnx::TypeProto TypeChooser::Choose(const std::string& name, const Scope& scope,
                                    const ModelOperation& operation, const onnx::TypeProto& made) {
  const onnx::TypeProto* declared = DeclaredAs(name, scope);
  if (declared == nullptr) return made;
  onnx::TypeProto planned = made;
  if (!IsFullTensor(made)) {
    // Declarations in files are often wrong, so they are used only if nothing else is known.
    onnx::TypeProto filled = *declared;
    if (FillDims(filled, bound_.dims) && IsFullTensor(filled)) planned = std::move(filled);
  }
  Compare(name, scope, fmt::format("{} \"{}\"", operation.type(), ShortName(operation.name)), made,
          planned);
  return planned;
}

void TypeChooser::Compare(const std::string& name, const Scope& scope, const std::string& maker,
                          const onnx::TypeProto& made, const onnx::TypeProto& planned) {
  const onnx::TypeProto* declared = DeclaredAs(name, scope);
  if (!compares_ || declared == nullptr || IsInFunction(scope)) return;
  // Only numbers are compared, since exporters give dimensions of different sizes the same name.
  if (!Contradict(*declared, made)) return;
  contradictions_.push_back(fmt::format("\"{}\" (declared {}, made {} by {}, planned {})",
                                        ShortName(name), TextOf(*declared), TextOf(made), maker,
                                        TextOf(planned)));
}

std::string TypeChooser::Warning() const {
  if (contradictions_.empty()) return "";
  return fmt::format(
      "what the file declares contradicts what operators make: {}; infer the model's shapes "
      "again, or remove those that it declares",
      ShortList(contradictions_, kShown));
}

}  // namespace ckplan
