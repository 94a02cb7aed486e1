// GRU.
#include <cmath>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// The loop over directions, samples and steps that all recurrent operators share.

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct Recurrent {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  int64_t steps, batch, width, hidden;

  bool Has(size_t input) const { return input < inputs.size() && inputs[input].is_present; }
  // Returns the product of row `row` of W and sample n's input at step t, plus W's bias.
  double Input(int64_t direction, int64_t row, int64_t t, int64_t n) const {
    double sum = 0;
    const int64_t rows = inputs[1].dim(1);
    for (int64_t i = 0; i < width; ++i) {
      sum +=
          inputs[1][(direction * rows + row) * width + i] * inputs[0][(t * batch + n) * width + i];
    }
    return sum + Bias(direction, row);
  }
  // Returns the product of row `row` of R and a sample's state, plus R's bias.
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

// Calls step(r, direction, t, n, state, cell), which advances sample n's state and cell.
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

void Gru(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const bool resets_after = spec.Int("linear_before_reset", 0) != 0;
  RunRecurrence(spec, inputs, outputs,
                [resets_after](const Recurrent& r, int64_t d, int64_t t, int64_t n,
                               std::vector<double>& state, std::vector<double>&) {
                  const std::vector<double> before = state;
                  const auto gate = [&](int64_t row) {
                    return Logistic(r.Input(d, row, t, n) + r.Recurrence(d, row, before));
                  };
                  std::vector<double> reset(before.size());
                  std::vector<double> product(before.size());
                  for (int64_t k = 0; k < r.hidden; ++k) {
                    const auto at = static_cast<size_t>(k);
                    reset[at] = gate(r.hidden + k);
                    product[at] = reset[at] * before[at];
                  }
                  for (int64_t k = 0; k < r.hidden; ++k) {
                    const auto at = static_cast<size_t>(k);
                    const int64_t row = 2 * r.hidden + k;
                    const double own = resets_after ? reset[at] * r.Recurrence(d, row, before)
                                                    : r.Recurrence(d, row, product);
                    const double candidate = std::tanh(r.Input(d, row, t, n) + own);
                    const double update = gate(k);
                    state[at] = (1 - update) * candidate + update * before[at];
                  }
                });
}

constexpr FunctionRow kGruReferences[] = {
    {"GRU", Gru},
};

constexpr CaseRow kGruCases[] = {
    {"GRU", "f4x2x3 f1x15x3! f1x15x5! -> f4x1x2x5 f1x2x5"},
    {"GRU", "f4x2x3 f1x15x3! f1x15x5! f1x30! -> f4x1x2x5 f1x2x5", "linear_before_reset=1"},
    {"GRU", "f4x2x3 f1x15x3 f1x15x5 f1x30 _ f1x2x5 -> f4x1x2x5 f1x2x5"},
    {"GRU", "f4x2x3 f1x15x3 f1x15x5 f1x30 _ f1x2x5 -> f4x1x2x5 f1x2x5",
     "linear_before_reset=1 hidden_size=5"},
    {"GRU", "f3x2x3 f1x15x3! f1x15x5! f1x30! _ f1x2x5 -> _ f1x2x5", "linear_before_reset=1"},
    {"GRU", "f3x2x3 f1x15x3! f1x15x5! f1x30! _ f1x2x5 -> _ f1x2x5"},
    {"GRU", "f3x2x4 f1x9x4! f1x9x3! f1x18! -> f3x1x2x3 f1x2x3", "direction='reverse'"},
    {"GRU", "f3x2x4 f2x9x4! f2x9x3! f2x18! _ f2x2x3 -> f3x2x2x3 f2x2x3",
     "direction='bidirectional'"},
    {"GRU", "f3x2x4 f2x9x4! f2x9x3! f2x18! _ f2x2x3 -> f3x2x2x3 f2x2x3",
     "direction='bidirectional' linear_before_reset=1"},
    {"GRU", "f3x2x4 f2x9x4! f2x9x3! -> _ f2x2x3", "direction='bidirectional'"},
};

}  // namespace

std::span<const FunctionRow> GruReferences() { return kGruReferences; }
std::span<const CaseRow> GruCases() { return kGruCases; }

// LSTM.

namespace {

void Lstm(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  RunRecurrence(spec, inputs, outputs,
                [](const Recurrent& r, int64_t d, int64_t t, int64_t n, std::vector<double>& state,
                   std::vector<double>& cell) {
                  const std::vector<double> before = state;
                  for (int64_t k = 0; k < r.hidden; ++k) {
                    const auto gate = [&](int64_t number) {
                      const int64_t row = number * r.hidden + k;
                      return r.Input(d, row, t, n) + r.Recurrence(d, row, before);
                    };
                    const auto at = static_cast<size_t>(k);
                    cell[at] =
                        Logistic(gate(2)) * cell[at] + Logistic(gate(0)) * std::tanh(gate(3));
                    state[at] = Logistic(gate(1)) * std::tanh(cell[at]);
                  }
                });
}

constexpr FunctionRow kLstmReferences[] = {
    {"LSTM", Lstm},
};

constexpr CaseRow kLstmCases[] = {
    {"LSTM", "f4x2x3 f1x20x3! f1x20x5! -> f4x1x2x5 f1x2x5 f1x2x5"},
    {"LSTM", "f4x2x3 f1x20x3! f1x20x5! f1x40! -> f4x1x2x5"},
    {"LSTM", "f4x2x3 f1x20x3 f1x20x5 f1x40 _ f1x2x5 f1x2x5 -> f4x1x2x5 f1x2x5 f1x2x5",
     "hidden_size=5"},
    {"LSTM", "f3x2x3 f1x20x3! f1x20x5! f1x40! _ _ f1x2x5 -> _ f1x2x5 f1x2x5"},
    {"LSTM", "f3x2x3 f1x20x3! f1x20x5! f1x40! _ f1x2x5 _ -> _ f1x2x5"},
    {"LSTM", "f3x2x4 f1x12x4! f1x12x3! f1x24! _ f1x2x3 f1x2x3 -> f3x1x2x3 f1x2x3 f1x2x3",
     "direction='reverse'"},
    {"LSTM", "f3x2x4 f2x12x4! f2x12x3! f2x24! _ f2x2x3 f2x2x3 -> f3x2x2x3 f2x2x3 f2x2x3",
     "direction='bidirectional'"},
    {"LSTM", "f3x2x4 f2x12x4! f2x12x3! -> _ f2x2x3 f2x2x3", "direction='bidirectional'"},
    {"LSTM", "f3x2x4 f1x12x4! f1x12x3! _ n2=[3,3] -> f3x1x2x3"},
    {"LSTM", "f1x1x4 f1x12x4! f1x12x3! -> f1x1x1x3"},
    {"LSTM", "f4x2x3~ f1x20x3! f1x20x5! f1x40! -> f4x1x2x5 _ _"},
};

}  // namespace

std::span<const FunctionRow> LstmReferences() { return kLstmReferences; }
std::span<const CaseRow> LstmCases() { return kLstmCases; }

}  // namespace ckplan::reference
