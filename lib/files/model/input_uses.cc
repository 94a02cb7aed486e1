#include "lib/files/model/input_uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/base/text.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/constant.h"
#include "lib/files/model/model.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/step_part.h"

namespace ckplan {
namespace {

using onnx::TensorProto;

// Returns the names of inputs that are not initializers.
std::vector<std::string_view> InputNames(const onnx::GraphProto& graph, const InputUses& uses) {
  std::vector<std::string_view> names;
  for (const auto& input : graph.input()) {
    if (!uses.initializers.contains(input.name())) names.emplace_back(input.name());
  }
  return names;
}

Result<Done> FindWeights(const onnx::GraphProto& graph, const NamePatterns& patterns,
                         const std::string& file, InputUses* uses) {
  if (patterns.empty()) return Done{};
  const std::vector<std::string_view> names = InputNames(graph, *uses);
  std::vector<NamedThing> things;
  for (const std::string_view name : names) things.push_back({{name}, ""});
  Result<std::vector<bool>> chosen = ChooseByName(patterns, things, "input");
  if (!chosen.ok()) {
    Error error = std::move(chosen).error();
    error.message.insert(0, file + ": ");
    return error;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if ((*chosen)[i]) uses->weights.emplace(names[i]);
  }
  if (!uses->weights.empty()) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: --weights {} chooses nothing; name an input that no later "
                               "pattern excludes",
                               file, ShortName(fmt::format("{}", fmt::join(patterns, ",")))));
}

Result<Done> FindSetInputs(const onnx::GraphProto& graph, const LoadOptions& options,
                           const std::string& file, InputUses* uses) {
  for (const std::string& text : options.set_inputs) {
    CKPLAN_ASSIGN_OR_RETURN(SetInput input, ParseSetInput(text));
    const std::vector<std::string_view> names = InputNames(graph, *uses);
    if (std::find(names.begin(), names.end(), input.name) == names.end()) {
      if (options.optional_dims.contains(input.name + "=")) continue;
      const std::string meant = DidYouMean(input.name, names);
      return MakeError(ErrorCode::kUsage, fmt::format("{}: --set: the model has no input \"{}\"{}",
                                                      file, ShortName(input.name), meant));
    }
    if (uses->weights.contains(input.name)) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: input \"{}\" cannot be both a parameter "
                                                      "(--weights) and a constant (--set)",
                                                      file, ShortName(input.name)));
    }
    uses->set.emplace(input.name, std::move(input));
  }
  return Done{};
}

// Returns a text such as "float[N,16]".
std::string DeclaredTypeText(const onnx::TypeProto& type) {
  if (!type.has_tensor_type()) return "not a tensor";
  const auto& tensor = type.tensor_type();
  const std::string element = TypeText(tensor.elem_type(), {});
  std::vector<std::string> dims;
  for (const auto& dim : tensor.shape().dim()) {
    const bool is_open = !dim.has_dim_value() || dim.dim_value() < 0;
    const std::string name = dim.dim_param().empty() ? "?" : ShortName(dim.dim_param());
    dims.push_back(is_open ? name : std::to_string(dim.dim_value()));
  }
  return fmt::format("{}[{}]", element.substr(0, element.find('[')),
                     tensor.has_shape() ? fmt::format("{}", fmt::join(dims, ",")) : "...");
}

Error TypeMismatch(const SetInput& given, const onnx::TypeProto& declared,
                   const std::string& file) {
  const char* const numbers = given.is_real ? "real numbers" : "whole numbers";
  const std::string value =
      given.dims.empty() ? fmt::format("a {}", given.is_real ? "real" : "whole") + " number"
                         : fmt::format("{} of shape [{}]", numbers, fmt::join(given.dims, ","));
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: input \"{}\" is {} and cannot be set to {}", file,
                               ShortName(given.name), DeclaredTypeText(declared), value));
}

// Sets open dimensions to the lengths of the lists. A single number fits every shape with one
// element. Returns false if the shape has other lengths.
bool FitDims(const Dims& given, onnx::TypeProto* type, Dims* dims) {
  auto& tensor = *type->mutable_tensor_type();
  const bool has_rank = tensor.has_shape();
  auto& shape = *tensor.mutable_shape();
  *dims = given;
  if (given.empty() && has_rank) dims->assign(static_cast<size_t>(shape.dim_size()), 1);
  if (!has_rank) {
    for (size_t i = 0; i < dims->size(); ++i) shape.add_dim();
  }
  if (static_cast<size_t>(shape.dim_size()) != dims->size()) return false;
  for (size_t i = 0; i < dims->size(); ++i) {
    auto& dim = *shape.mutable_dim(static_cast<int>(i));
    const bool is_open = !dim.has_dim_value() || dim.dim_value() < 0;
    if (!is_open && dim.dim_value() != (*dims)[i]) return false;
    if (is_open) dim.set_dim_value((*dims)[i]);
  }
  return true;
}

}  // namespace

Result<InputUses> FindInputUses(const onnx::GraphProto& graph, const LoadOptions& options,
                                const StepPart& part, const std::string& file) {
  InputUses uses;
  for (const auto& tensor : graph.initializer()) uses.initializers.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) {
    uses.initializers.insert(sparse.values().name());
  }
  CKPLAN_RETURN_IF_ERROR(FindWeights(graph, options.weights, file, &uses));
  CKPLAN_RETURN_IF_ERROR(FindSetInputs(graph, options, file, &uses));
  for (const auto& input : graph.input()) {
    const bool is_number = input.type().has_tensor_type() &&
                           input.type().tensor_type().elem_type() != TensorProto::STRING;
    // The type of an input that nothing reads does not matter.
    const bool is_idle = input.has_type() && !is_number && !part.names.contains(input.name());
    if (!part.Needs(input.name()) || is_idle) uses.left_out.insert(input.name());
  }
  return uses;
}

std::vector<std::string> UsedSetInputs(const Model& model, const std::vector<std::string>& texts) {
  const auto& inputs = model.impl().proto->graph().input();
  std::vector<std::string> used;
  for (const std::string& text : texts) {
    const Result<SetInput> given = ParseSetInput(text);
    const bool is_there =
        given.ok() && std::any_of(inputs.begin(), inputs.end(),
                                  [&](const auto& input) { return input.name() == given->name; });
    if (is_there) used.push_back(text);
  }
  return used;
}

Result<ConstantValue> ContentsOf(const SetInput& given, onnx::TypeProto* type,
                                 const std::string& file) {
  const onnx::TypeProto declared = *type;  // FitDims fills in open dimensions.
  ConstantValue value;
  value.elem_type = type->tensor_type().elem_type();
  const bool is_float = IsFloatType(value.elem_type);
  const bool is_number = type->has_tensor_type() && value.elem_type != TensorProto::STRING &&
                         TensorBytes(value.elem_type, {}).has_value();
  if (!is_number || (given.is_real && !is_float) || !FitDims(given.dims, type, &value.dims)) {
    return TypeMismatch(given, declared, file);
  }
  if (is_float) {
    value.reals =
        given.is_real ? given.reals : std::vector<double>(given.ints.begin(), given.ints.end());
  } else {
    value.ints = given.ints;
  }
  ConstantValue normal = value;
  NormalizeToType(normal);
  if (normal.ints != value.ints) return TypeMismatch(given, declared, file);
  return normal;
}

std::string AsPattern(const std::string& name) {
  std::string pattern = name;
  for (char& c : pattern) {
    if (c == ',' || static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  }
  const bool is_special =
      pattern.starts_with('!') || pattern.starts_with('@') || pattern.starts_with("op:");
  if (is_special) pattern[0] = '?';
  return pattern;
}

std::string PatternFor(const onnx::GraphProto& graph, const std::string& value) {
  std::vector<std::string> names = {value};
  for (const onnx::NodeProto& node : graph.node()) {
    const auto& outputs = node.output();
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) continue;
    if (!node.name().empty()) names.push_back(node.name());
  }
  for (const std::string& name : names) {
    const std::string pattern = AsPattern(name);
    if (pattern.empty() || WellFormedUtf8(pattern) != pattern) continue;
    const Result<StepPart> part = ChoosePart(graph, {pattern}, "");
    if (part.ok() && part->outputs == std::vector<std::string>{value}) return pattern;
  }
  return "";
}

}  // namespace ckplan
