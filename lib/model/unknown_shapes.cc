#include "lib/model/unknown_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/model/constant_batch.h"

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

// Shapes of at most so many dimensions are shown with their numbers.
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

std::string UnknownText(const Model::Impl& model, const ModelOperation& operation,
                        const ModelValue& value) {
  std::string text =
      fmt::format("output \"{}\" of {}", ShortName(value.name), NodeText(model, operation));
  if (operation.schema == nullptr) {
    return text + ": no one knows this operator; declare the type of its outputs in value_info";
  }
  return text + ": it depends on the contents of the batch; declare it in value_info";
}

// Returns an error that lists nodes as InvalidModel lists faults, and ends with what to do.
Error StoppedAt(std::string_view what, const std::vector<std::string>& nodes, ErrorCode code,
                const std::string& file) {
  Error error = InvalidModel(file, what, nodes);
  error.code = code;
  return error;
}

Error BatchStops(int64_t batch, const std::vector<std::string>& nodes, const std::string& file) {
  Error error = StoppedAt(fmt::format("a batch of {} does not go through it", batch), nodes,
                          ErrorCode::kUnsupported, file);
  error.message += "; export the model with an open batch";
  return error;
}

Error ShapesStop(const BoundDims& bound, const std::vector<std::string>& nodes,
                 const std::string& file) {
  Error error = StoppedAt("the given shapes of inputs do not go through it", nodes,
                          ErrorCode::kInvalidInput, file);
  const std::optional<int64_t> batch = BatchOfShapes(bound);
  if (batch) {
    error.remedy = {"set the batch with", {{"batch", std::to_string(*batch)}}};
  } else {
    error.message += "; give shapes that its nodes take, or export it with open dimensions";
  }
  return error;
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
  if (!onnx_fault.empty()) return "they do not fit each other";
  if (!operation.is_standard() || operation.type() != "Reshape") return "";
  if (operation.input(0) == kNoValue || operation.output(0) == kNoValue) return "";
  const ModelValue& made = model.value(operation.outputs[0]);
  const auto elements = ElementCount(model.value(operation.inputs[0]).dims);
  if (!made.has_shape || ElementCount(made.dims) == elements) return "";
  return fmt::format("its shape has {} elements, and its input {}",
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

Error NoTensors(const std::string& file, const std::vector<std::string>& names) {
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("{}: only tensors can be planned, no sequences, maps or "
                               "optionals: {}; export the model without them",
                               file, ShortList(names)));
}

Result<Done> CheckShapesKnown(const Model::Impl& model, const ShapeFaults& faults,
                              const BoundDims& bound, const std::string& file) {
  const std::vector<bool> is_used = FindUsed(model);
  std::vector<std::string> unknown;
  std::vector<std::string> stops;    // Nodes that do not take the shapes of their inputs.
  std::vector<std::string> invalid;  // Nodes that contradict the rules of their operators.
  std::vector<std::string> no_tensors;
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const ModelOperation& operation = model.operations[i];
    const auto stop = faults.of_request.find(static_cast<int32_t>(i));
    const bool is_read =
        std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](ValueIndex output) {
          return output != kNoValue && is_used[static_cast<size_t>(output)];
        });
    if (stop != faults.of_request.end() && is_read) {
      stops.push_back(NodeText(model, operation) + ": " + stop->second);
      continue;
    }
    // A fault of operands that are unknown themselves follows from the reason for that.
    if (const auto fault = faults.of_operator.find(static_cast<int32_t>(i));
        fault != faults.of_operator.end() && HasKnownInputs(model, operation)) {
      invalid.push_back(NodeText(model, operation) + ": " + ShortText(fault->second));
      continue;
    }
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue || !is_used[static_cast<size_t>(output)]) continue;
      const ModelValue& value = model.value(output);
      if (value.has_shape) continue;
      const auto kind = value.type.value_case();
      if (kind != onnx::TypeProto::kTensorType && kind != onnx::TypeProto::VALUE_NOT_SET) {
        no_tensors.push_back(fmt::format("{} \"{}\"", operation.type(), ShortName(operation.name)));
      } else if (HasKnownInputs(model, operation)) {
        unknown.push_back(UnknownText(model, operation, value));
      }
    }
  }
  if (!no_tensors.empty()) return NoTensors(file, no_tensors);
  if (!stops.empty()) {
    return bound.batch > 0 ? BatchStops(bound.batch, stops, file) : ShapesStop(bound, stops, file);
  }
  if (!invalid.empty()) {
    return InvalidModel(file, "invalid operands or attributes", invalid);
  }
  if (!unknown.empty()) return InvalidModel(file, "a shape stays unknown", unknown);
  return Done{};
}

}  // namespace ckplan
