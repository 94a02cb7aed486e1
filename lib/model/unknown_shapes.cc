#include "lib/model/unknown_shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/model/bind_dims.h"

namespace ckplan {

namespace {

constexpr size_t kShownFaults = 4;
// ONNX's messages may be long, so only their beginning is shown.
constexpr size_t kShownCharacters = 300;

std::string ShortText(const std::string& text) {
  std::string line;
  for (const char c : text.substr(0, kShownCharacters)) line += c == '\n' ? ' ' : c;
  return line;
}

std::vector<bool> FindUsed(const Model::Impl& model) {
  std::vector<bool> is_used(model.values.size(), false);
  for (const ModelOperation& operation : model.operations) {
    for (const ValueIndex input : operation.inputs) {
      if (input != kNoValue) is_used[static_cast<size_t>(input)] = true;
    }
  }
  for (const ValueIndex output : model.graph_outputs) is_used[static_cast<size_t>(output)] = true;
  return is_used;
}

// Returns whether the fault begins at this operation rather than at its inputs.
bool HasKnownInputs(const Model::Impl& model, const ModelOperation& operation) {
  return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&model](ValueIndex input) {
    return input == kNoValue || model.value(input).has_shape;
  });
}

std::string UnknownText(const Model::Impl& model, const ModelOperation& operation,
                        const ModelValue& value, const std::string* onnx_fault) {
  std::vector<std::string> inputs;
  for (const ValueIndex input : operation.inputs) {
    if (input == kNoValue) continue;
    const ModelValue& read = model.value(input);
    inputs.push_back(TypeText(read.elem_type, read.dims) +
                     (read.constant != nullptr ? " of known contents" : ""));
  }
  std::string text = fmt::format("output \"{}\" of node \"{}\" ({}", ShortName(value.name),
                                 ShortName(operation.name), ShortName(operation.type()));
  if (!operation.is_standard()) text += " of " + ShortName(operation.node->domain());
  text += fmt::format(") on {}", inputs.empty() ? "no inputs" : ShortList(inputs, 6));
  if (onnx_fault != nullptr) return text + ": " + ShortText(*onnx_fault);
  if (operation.schema == nullptr) {
    return text + ": no one knows this operator; declare the type of its outputs in value_info";
  }
  return text + ": it depends on the contents of the batch; declare it in value_info";
}

}  // namespace

Error InvalidModel(const std::string& file, std::string_view what,
                   const std::vector<std::string>& faults) {
  Error error =
      MakeError(ErrorCode::kInvalidInput, fmt::format("{}: {}: {}", file, what, faults[0]));
  if (faults.size() > 1) {
    error.message += fmt::format(" (and {} more)", faults.size() - 1);
    const size_t shown = std::min(faults.size(), kShownFaults);
    error.notes.assign(faults.begin() + 1, faults.begin() + static_cast<std::ptrdiff_t>(shown));
  }
  return error;
}

Error NoTensors(const std::string& file, const std::vector<std::string>& names) {
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("{}: only tensors can be planned, no sequences, maps or "
                               "optionals: {}; export the model without them",
                               file, ShortList(names)));
}

Result<Done> CheckShapesKnown(const Model::Impl& model,
                              const std::unordered_map<int32_t, std::string>& onnx_faults,
                              const std::string& file) {
  const std::vector<bool> is_used = FindUsed(model);
  std::vector<std::string> unknown;
  std::vector<std::string> no_tensors;
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const ModelOperation& operation = model.operations[i];
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue || !is_used[static_cast<size_t>(output)]) continue;
      const ModelValue& value = model.value(output);
      if (value.has_shape) continue;
      const auto kind = value.type.value_case();
      if (kind != onnx::TypeProto::kTensorType && kind != onnx::TypeProto::VALUE_NOT_SET) {
        no_tensors.push_back(fmt::format("{} \"{}\"", operation.type(), ShortName(operation.name)));
      } else if (HasKnownInputs(model, operation)) {
        const auto fault = onnx_faults.find(static_cast<int32_t>(i));
        unknown.push_back(UnknownText(model, operation, value,
                                      fault == onnx_faults.end() ? nullptr : &fault->second));
      }
    }
  }
  if (!no_tensors.empty()) return NoTensors(file, no_tensors);
  if (!unknown.empty()) return InvalidModel(file, "a shape stays unknown", unknown);
  return Done{};
}

}  // namespace ckplan
