// The loop over directions, samples and steps that all recurrent operators share.
#pragma once

#include <cmath>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Recurrent {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  int64_t steps, batch, width, hidden;

  bool Has(size_t input) const { return input < inputs.size() && inputs[input].is_present; }
  // Returns the product of row `row` of W and the input of sample n at step t, plus the bias of W.
  double Input(int64_t direction, int64_t row, int64_t t, int64_t n) const {
    double sum = 0;
    const int64_t rows = inputs[1].dim(1);
    for (int64_t i = 0; i < width; ++i) {
      sum +=
          inputs[1][(direction * rows + row) * width + i] * inputs[0][(t * batch + n) * width + i];
    }
    return sum + Bias(direction, row);
  }
  // Returns the product of row `row` of R and the state of a sample, plus the bias of R.
  double Recurrence(int64_t direction, int64_t row, const std::vector<double>& state) const {
    double sum = 0;
    const int64_t rows = inputs[1].dim(1);
    for (int64_t i = 0; i < hidden; ++i) {
      sum += inputs[2][(direction * rows + row) * hidden + i] * state[static_cast<size_t>(i)];
    }
    return sum + Bias(direction, rows + row);
  }
  double Bias(int64_t direction, int64_t row) const {
    return Has(3) ? inputs[3][direction * inputs[3].dim(1) + row] : 0;
  }
  std::vector<double> Initial(size_t input, int64_t direction, int64_t n) const {
    std::vector<double> state(static_cast<size_t>(hidden), 0.0);
    for (int64_t k = 0; Has(input) && k < hidden; ++k) {
      state[static_cast<size_t>(k)] = inputs[input][(direction * batch + n) * hidden + k];
    }
    return state;
  }
  void Write(size_t output, int64_t row, const std::vector<double>& state) const {
    if (output >= outputs.size() || !outputs[output].is_present) return;
    for (int64_t k = 0; k < hidden; ++k) {
      outputs[output][row * hidden + k] = state[static_cast<size_t>(k)];
    }
  }
};

// Calls step(r, direction, t, n, state, cell), which replaces the state and cell of sample n by the
// next ones.
template <typename Step>
void RunRecurrence(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                   const Step& step) {
  const Tensor& x = inputs[0];
  const Recurrent r{inputs, outputs, x.dim(0), x.dim(1), x.dim(2), inputs[2].dim(2)};
  const int64_t directions = inputs[2].dim(0);
  for (int64_t d = 0; d < directions; ++d) {
    const bool is_back = d == 1 || spec.String("direction", "forward") == "reverse";
    for (int64_t n = 0; n < r.batch; ++n) {
      std::vector<double> state = r.Initial(5, d, n);
      std::vector<double> cell = r.Initial(6, d, n);
      for (int64_t i = 0; i < r.steps; ++i) {
        const int64_t t = is_back ? r.steps - 1 - i : i;
        step(r, d, t, n, state, cell);
        r.Write(0, (t * directions + d) * r.batch + n, state);
      }
      r.Write(1, d * r.batch + n, state);
      r.Write(2, d * r.batch + n, cell);
    }
  }
}

}  // namespace ckplan::reference
