#include "lib/files/model/unknown_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lib/files/model/constant_batch.h"
#include "lib/files/model/dead_ends.h"
#include "lib/files/model/decompose.h"
#include "lib/files/model/hinted_types.h"

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

// Shapes with at most this many dimensions are shown in full.
constexpr size_t kShownNumbers = 8;

std::string OperandText(const ModelValue& read) {
  const std::string type = TypeText(read.elem_type, read.dims);
  if (read.constant == nullptr) return type;
  const bool is_short = !read.constant->is_float() && read.constant->size() <= kShownNumbers;
  return is_short ? fmt::format("{} {{{}}}", type, fmt::join(read.constant->ints, ","))
                  : type + " of known contents";
}

// Returns a text such as "node "r" (Reshape) on float[8,6], int64[2] {1,6}".
std::string NodeText(const Model::Impl& model, const ModelOperation& operation) {
  std::string text =
      fmt::format("node \"{}\" ({}", ShortName(operation.name), ShortName(operation.type()));
  if (!operation.is_standard()) text += " of " + ShortName(operation.node->domain());
  std::vector<std::string> inputs;
  for (const ValueIndex input : operation.inputs) {
    if (input != kNoValue) inputs.push_back(OperandText(model.value(input)));
  }
  return text + fmt::format(") on {}", inputs.empty() ? "no inputs" : ShortList(inputs, 6));
}

// `deciding` has the inputs whose contents determine the shape.
std::string UnknownText(const Model::Impl& model, const ModelOperation& operation,
                        const ModelValue& value, const std::set<std::string>& deciding) {
  std::string text =
      fmt::format("output \"{}\" of {}", ShortName(value.name), NodeText(model, operation));
  if (IsDescribable(operation) && GivenHintFor(model, *operation.node) != nullptr) {
    return text +
           ": its description (--op-shape) refers to an operand, axis or integer attribute that "
           "this node lacks";
  }
  const char* const remedy =
      "declare the type of its outputs in value_info, or describe it with --op-shape";
  if (IsDecomposed(*operation.node) || HasBuiltInHint(*operation.node)) {
    return text + ": ckplan doesn't know this use of the operator; " + remedy;
  }
  if (operation.schema == nullptr) {
    return text + ": ckplan doesn't know this operator; " + remedy;
  }
  if (IsDescribable(operation)) return text + ": ONNX has no rule for its shape; " + remedy;
  if (deciding.empty()) {
    return text + ": its shape depends on the contents of the batch; declare it in value_info";
  }
  std::vector<std::string> shown;
  for (const std::string& name : deciding) shown.push_back(fmt::format("\"{}\"", ShortName(name)));
  return text + fmt::format(": its shape depends on the contents of input{} {}",
                            shown.size() == 1 ? "" : "s", ShortList(shown, 3));
}

// Returns the inputs whose contents determine shapes that ONNX could otherwise infer.
std::set<std::string> DecidingInputs(const Model::Impl& model, const DeadEnds& dead_ends,
                                     const ModelOperation& operation) {
  std::set<std::string> names;
  if (operation.schema == nullptr) return names;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const ValueIndex input = operation.inputs[i];
    if (input == kNoValue) continue;
    for (std::string& name : FindSwitches(model, dead_ends, input)) names.insert(std::move(name));
    // A float may be the end of a range, or a scale.
    const ModelValue& value = model.value(input);
    const bool is_number = i > 0 || operation.type() == "Range";
    const bool is_input = value.source == ModelValue::Source::kGraphInput;
    if (is_input && is_number && IsPossibleSwitch(value)) names.insert(value.name);
  }
  return names;
}

// Returns an error that lists nodes like InvalidModel lists faults, without a remedy.
Error UnsupportedNodes(std::string_view what, const std::vector<std::string>& nodes, ErrorCode code,
                       const std::string& file) {
  Error error = InvalidModel(file, what, nodes);
  error.code = code;
  return error;
}

Error BatchError(int64_t batch, const std::vector<std::string>& nodes, const std::string& file) {
  Error error = UnsupportedNodes(fmt::format("a batch size of {} does not work", batch), nodes,
                                 ErrorCode::kUnsupported, file);
  error.message += "; export the model with an open batch";
  return error;
}

Error ShapesError(const BoundDims& bound, const std::vector<std::string>& nodes,
                  const std::string& file) {
  Error error =
      UnsupportedNodes("the given input shapes do not work", nodes, ErrorCode::kInvalidInput, file);
  const std::optional<int64_t> batch = BatchOfShapes(bound);
  if (batch) {
    error.remedy = {"set the batch with", {{"batch", std::to_string(*batch)}}};
  } else {
    error.message += "; use shapes that its nodes support, or export it with open dimensions";
  }
  return error;
}

bool ProducesNeeded(const ModelOperation& operation, const std::vector<bool>& is_needed) {
  return std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](ValueIndex output) {
    return output != kNoValue && is_needed[static_cast<size_t>(output)];
  });
}

}  // namespace

bool HasKnownInputs(const Model::Impl& model, const ModelOperation& operation) {
  return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&model](ValueIndex input) {
    return input == kNoValue || model.value(input).has_shape;
  });
}

std::string MisfitOf(const Model::Impl& model, const ModelOperation& operation,
                     const std::string& onnx_fault) {
  if (!HasKnownInputs(model, operation)) return "";
  if (!onnx_fault.empty()) return "the input shapes are incompatible";
  if (!operation.is_standard() || operation.type() != "Reshape") return "";
  if (operation.input(0) == kNoValue || operation.output(0) == kNoValue) return "";
  const ModelValue& made = model.value(operation.outputs[0]);
  const auto elements = ElementCount(model.value(operation.inputs[0]).dims);
  if (!made.has_shape || ElementCount(made.dims) == elements) return "";
  return fmt::format("its shape has {} elements, but its input has {}",
                     ElementCount(made.dims).value_or(0), elements.value_or(0));
}

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

Result<Done> CheckShapeFaults(const Model::Impl& model, const ShapeFaults& faults,
                              const BoundDims& bound, const std::vector<bool>& is_needed,
                              const std::string& file) {
  std::vector<std::string> stops;    // Nodes that can't use the shapes of their inputs.
  std::vector<std::string> invalid;  // Nodes that contradict the rules of their operators.
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const ModelOperation& operation = model.operations[i];
    if (!ProducesNeeded(operation, is_needed)) continue;
    const auto stop = faults.of_request.find(static_cast<int32_t>(i));
    if (stop != faults.of_request.end()) {
      stops.push_back(NodeText(model, operation) + ": " + stop->second);
      continue;
    }
    // A fault of operands that are themselves unknown follows from the reason for that.
    const auto fault = faults.of_operator.find(static_cast<int32_t>(i));
    if (fault == faults.of_operator.end() || !HasKnownInputs(model, operation)) continue;
    invalid.push_back(NodeText(model, operation) + ": " + ShortText(fault->second));
  }
  if (!stops.empty()) {
    return bound.batch > 0 ? BatchError(bound.batch, stops, file) : ShapesError(bound, stops, file);
  }
  if (invalid.empty()) return Done{};
  return InvalidModel(file, "invalid operands or attributes", invalid);
}

Result<Done> CheckShapesKnown(const Model::Impl& model, const DeadEnds& dead_ends,
                              const std::vector<bool>& is_needed, const std::string& file) {
  std::set<std::string> deciding;  // Inputs.
  std::vector<std::string> unknown;
  std::vector<std::string> no_tensors;
  for (const ModelOperation& operation : model.operations) {
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue || !is_needed[static_cast<size_t>(output)]) continue;
      const ModelValue& value = model.value(output);
      if (value.has_shape) continue;
      const auto kind = value.type.value_case();
      if (kind != onnx::TypeProto::kTensorType && kind != onnx::TypeProto::VALUE_NOT_SET) {
        no_tensors.push_back(fmt::format("{} \"{}\"", operation.type(), ShortName(operation.name)));
      } else if (HasKnownInputs(model, operation)) {
        std::set<std::string> own = DecidingInputs(model, dead_ends, operation);
        unknown.push_back(UnknownText(model, operation, value, own));
        deciding.merge(own);
      }
    }
  }
  if (no_tensors.empty() && unknown.empty()) return Done{};
  Error error = !no_tensors.empty()
                    ? MakeError(ErrorCode::kUnsupported,
                                fmt::format("{}: only tensors can be planned, not sequences, maps "
                                            "or optionals: {}",
                                            file, ShortList(no_tensors)))
                    : InvalidModel(file, "a shape is unknown", unknown);
  if (!deciding.empty()) {
    SuggestContents(deciding, &error);
  } else {
    SuggestEnds(model, &error);
  }
  return error;
}

}  // namespace ckplan
