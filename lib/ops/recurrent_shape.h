// The shapes of LSTM and GRU, read off attributes and operands.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct RecurrentShape {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int64_t directions = 1;
  int64_t gates = 0;
  bool is_reversed = false;  // The first direction goes from the last step to the first.

  int64_t rows() const { return steps * batch; }
  int64_t width() const { return gates * hidden; }
  int64_t state() const { return batch * hidden; }  // Elements of one hidden state.
  // The i-th step that a direction makes.
  int64_t StepOf(int64_t direction, int64_t i) const {
    return is_reversed || direction == 1 ? steps - 1 - i : i;
  }
};

// kUnsupported: activations, clipping, layouts and lengths other than the defaults.
Result<RecurrentShape> ReadRecurrent(const OpSpec& spec, int64_t gates);

}  // namespace ckplan
