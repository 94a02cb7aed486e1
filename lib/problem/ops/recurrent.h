// Shapes of LSTM and GRU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Positions of the optional inputs.
inline constexpr size_t kRecurrentBias = 3, kRecurrentInitialState = 5, kRecurrentInitialCell = 6;

struct RecurrentShape {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int64_t directions = 1;
  int64_t gates = 0;
  bool is_reversed = false;  // True if the first direction runs from the last step to the first.
  // True if backward reads the output with the hidden states of all steps. That output does not
  // exist if the model names it but never uses it.
  bool has_output = false;
  // True if forward saves a reserve for backward: the gates, other values of each step that
  // backward reads and, if has_output is false, the hidden states.
  bool has_reserve = false;
  // The position of the first input whose gradient is requested, if any.
  std::optional<size_t> first_gradient;

  int64_t rows() const { return steps * batch; }
  int64_t width() const { return gates * hidden; }
  int64_t state() const { return batch * hidden; }  // The elements of one hidden state.
  int64_t all_states() const { return directions * steps * state(); }
  // Offsets in the reserve, in floats. The gates of all steps come first, then each step's cell
  // state (LSTM) or recurrent part of the candidate state (GRU), then the hidden states.
  int64_t extras_offset() const { return gates * all_states(); }
  int64_t states_offset() const { return (gates + 1) * all_states(); }
  // Returns the i-th step in the order of `direction`.
  int64_t StepOf(int64_t direction, int64_t i) const {
    return is_reversed || direction == 1 ? steps - 1 - i : i;
  }
};

// `gates` is 4 for LSTM and 3 for GRU. kUnsupported: activations, clipping, layouts and lengths
// other than the defaults.
Result<RecurrentShape> ReadRecurrentShape(const OpSpec& spec, int64_t gates);

// The shape of GRU.
struct GruShape : RecurrentShape {
  bool resets_after = false;  // Applies the reset gate after the recurrent product.
};

Result<GruShape> ReadGruShape(const OpSpec& spec);

// The shape of LSTM.

using LstmShape = RecurrentShape;

Result<LstmShape> ReadLstmShape(const OpSpec& spec);

}  // namespace ckplan
