#include "lib/problem/ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

constexpr size_t kLengths = 4, kPeepholes = 7;  // Positions of inputs.
constexpr int64_t kLstmGates = 4;               // Only LSTM has a cell state.

// Keras's exporter names the default activations, one list for each direction.
bool HasDefaultActivations(const OpSpec& spec) {
  std::string names = spec.type == "LSTM"  ? "Sigmoid,Tanh,Tanh"
                      : spec.type == "GRU" ? "Sigmoid,Tanh"
                                           : "Tanh";
  if (spec.String("direction", "forward") == "bidirectional") names += "," + names;
  return spec.String("activations", names) == names;
}

Result<Done> CheckRecurrentOptions(const OpSpec& spec) {
  if (spec.Int("layout", 0) != 0) {
    return UnsupportedOp(spec, "its batch is the first axis (attribute layout)");
  }
  if (spec.Has("clip")) return UnsupportedOp(spec, "it clips its gates (attribute clip)");
  if (!HasDefaultActivations(spec)) {
    return UnsupportedOp(spec, "it sets its activations (attribute activations)");
  }
  if (spec.Int("input_forget", 0) != 0) {
    return UnsupportedOp(spec, "it couples its gates (attribute input_forget)");
  }
  if (spec.input(kPeepholes).is_present) return UnsupportedOp(spec, "it has peepholes");
  return Done{};
}

Result<int64_t> ReadDirections(const OpSpec& spec) {
  const std::string direction = spec.String("direction", "forward");
  if (direction == "bidirectional") return 2;
  if (direction == "forward" || direction == "reverse") return 1;
  return InvalidOp(spec, fmt::format("attribute direction is \"{}\" instead of forward, reverse or "
                                     "bidirectional",
                                     direction));
}

// Returns true if the lengths are known before the step and every sample runs all steps.
bool CoverAllSteps(const Operand& lengths, int64_t steps) {
  if (!lengths.is_present) return true;
  if (!lengths.known.has_value()) return false;
  const std::vector<int64_t>& ints = lengths.known->ints;
  return std::all_of(ints.begin(), ints.end(), [steps](int64_t n) { return n == steps; });
}

Result<Done> ReadSizes(const OpSpec& spec, RecurrentShape& shape) {
  for (size_t i = 0; i < 3; ++i) {
    if (spec.input(i).dims.size() == 3) continue;
    return InvalidOp(
        spec, fmt::format("input {} has {} axes instead of 3", i, spec.input(i).dims.size()));
  }
  const Dims& x = spec.input(0).dims;
  shape.steps = x[0];
  shape.batch = x[1];
  shape.inputs = x[2];
  shape.hidden = spec.input(2).dims[2];
  const int64_t hidden = spec.Int("hidden_size", shape.hidden);
  if (hidden == shape.hidden) return Done{};
  return InvalidOp(spec, fmt::format("attribute hidden_size is {}, but its recurrence weights are "
                                     "for {}",
                                     hidden, shape.hidden));
}

// Checks the sizes of the matrix products and the bytes that are saved for backward.
Result<Done> CheckLibrarySizes(const OpSpec& spec, const RecurrentShape& shape) {
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of its steps and samples", {shape.steps, shape.batch}));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the size of its input", shape.inputs));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the size of its gates", {shape.gates, shape.hidden}));
  const auto bytes = SizeProduct(
      {shape.directions, shape.steps, shape.batch, shape.hidden, shape.gates + 2, kFloatBytes});
  if (bytes.has_value()) return Done{};
  return UnsupportedOp(spec, "the bytes of all its gates do not fit 64 bits");
}

Result<Done> CheckInputs(const OpSpec& spec, const RecurrentShape& shape) {
  const int64_t directions = shape.directions;
  const int64_t width = shape.width();
  CKPLAN_RETURN_IF_ERROR(
      RequireDims(spec, spec.input(1), "its weight", {directions, width, shape.inputs}));
  CKPLAN_RETURN_IF_ERROR(
      RequireDims(spec, spec.input(2), "its recurrence weight", {directions, width, shape.hidden}));
  CKPLAN_RETURN_IF_ERROR(
      RequireOptional(spec, spec.input(kRecurrentBias), "its bias", {directions, 2 * width}));
  const Dims state = {directions, shape.batch, shape.hidden};
  CKPLAN_RETURN_IF_ERROR(
      RequireOptional(spec, spec.input(kRecurrentInitialState), "its initial state", state));
  return RequireOptional(spec, spec.input(kRecurrentInitialCell), "its initial cell", state);
}

Result<Done> CheckLengths(const OpSpec& spec, const RecurrentShape& shape) {
  const Operand& lengths = spec.input(kLengths);
  if (lengths.is_present) {
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, lengths, "its list of lengths", {shape.batch}));
  }
  if (CoverAllSteps(lengths, shape.steps)) return Done{};
  return UnsupportedOp(spec, "its sequence lengths are unknown or less than its number of steps");
}

Result<Done> CheckOutputs(const OpSpec& spec, const RecurrentShape& shape) {
  const Dims state = {shape.directions, shape.batch, shape.hidden};
  CKPLAN_RETURN_IF_ERROR(
      RequireOptional(spec, spec.output(0), "its output",
                      {shape.steps, shape.directions, shape.batch, shape.hidden}));
  CKPLAN_RETURN_IF_ERROR(RequireOptional(spec, spec.output(1), "its last state", state));
  if (shape.gates != kLstmGates && spec.output(2).is_present) {
    return InvalidOp(spec, "it has a third output but no cell state");
  }
  return RequireOptional(spec, spec.output(2), "its last cell", state);
}

}  // namespace

Result<RecurrentShape> ReadRecurrentShape(const OpSpec& spec, int64_t gates) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 3, 0));
  CKPLAN_RETURN_IF_ERROR(CheckRecurrentOptions(spec));
  RecurrentShape shape;
  shape.gates = gates;
  CKPLAN_ASSIGN_OR_RETURN(shape.directions, ReadDirections(spec));
  shape.is_reversed = spec.String("direction", "forward") == "reverse";
  CKPLAN_RETURN_IF_ERROR(ReadSizes(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckLibrarySizes(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckInputs(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckLengths(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckOutputs(spec, shape));
  shape.has_output = spec.output(0).is_present && spec.output(0).is_read_by_backward;
  shape.has_reserve = spec.statistic_bytes > 0;
  const int64_t saved = gates + (shape.has_output ? 1 : 2);
  CKPLAN_RETURN_IF_ERROR(RequireStatistic(spec, {shape.all_states(), saved, kFloatBytes}));
  for (size_t i = spec.inputs.size(); i-- > 0;) {
    if (spec.inputs[i].has_gradient) shape.first_gradient = i;
  }
  return shape;
}

Result<GruShape> ReadGruShape(const OpSpec& spec) {
  GruShape shape;
  CKPLAN_ASSIGN_OR_RETURN(static_cast<RecurrentShape&>(shape), ReadRecurrentShape(spec, 3));
  shape.resets_after = spec.Int("linear_before_reset", 0) != 0;
  return shape;
}

std::span<const FamilyRow> GruFamily() {
  static constexpr FamilyRow kRows[] = {
      {"GRU", ValidateBy<ReadGruShape>, "default activations, no clipping or lengths"}};
  return kRows;
}

Result<LstmShape> ReadLstmShape(const OpSpec& spec) { return ReadRecurrentShape(spec, 4); }

std::span<const FamilyRow> LstmFamily() {
  static constexpr FamilyRow kRows[] = {{"LSTM", ValidateBy<ReadLstmShape>,
                                         "default activations, no peepholes, clipping or lengths"}};
  return kRows;
}

}  // namespace ckplan
