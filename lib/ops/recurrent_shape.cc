#include "lib/ops/recurrent_shape.h"

#include <algorithm>

namespace ckplan {

namespace {

// One length for all samples, known before the step, that leaves no step out.
bool AreAllSteps(const Operand& lengths, int64_t steps) {
  if (!lengths.is_present) return true;
  if (!lengths.known.has_value()) return false;
  const std::vector<int64_t>& ints = lengths.known->ints;
  return std::all_of(ints.begin(), ints.end(), [steps](int64_t n) { return n == steps; });
}

}  // namespace

Result<RecurrentShape> ReadRecurrent(const OpSpec& spec, int64_t gates) {
  if (spec.Int("layout", 0) != 0) {
    return UnsupportedOp(spec, "its batch is the first axis (layout)");
  }
  if (spec.Has("clip")) return UnsupportedOp(spec, "it clips its gates");
  if (spec.Has("activations")) return UnsupportedOp(spec, "it chooses its activations");
  if (spec.Int("input_forget", 0) != 0) return UnsupportedOp(spec, "it couples its gates");
  if (spec.input(7).is_present) return UnsupportedOp(spec, "it has peepholes");
  const std::string direction = spec.String("direction", "forward");
  const std::vector<int64_t>& x = spec.input(0).dims;
  const std::vector<int64_t>& recurrence = spec.input(2).dims;
  RecurrentShape shape;
  shape.steps = x[0];
  shape.batch = x[1];
  shape.inputs = x[2];
  shape.directions = recurrence[0];
  shape.hidden = recurrence[2];
  shape.gates = gates;
  shape.is_reversed = direction == "reverse";
  if (!AreAllSteps(spec.input(4), shape.steps)) {
    return UnsupportedOp(spec, "its sequences have lengths of their own");
  }
  if (shape.rows() * shape.inputs * shape.hidden == 0) return UnsupportedOp(spec, "it is empty");
  return shape;
}

}  // namespace ckplan
