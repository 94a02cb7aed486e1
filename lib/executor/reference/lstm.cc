// LSTM.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/recurrent.h"

namespace ckplan::reference {

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
                    cell[at] = Sigmoid(gate(2)) * cell[at] + Sigmoid(gate(0)) * std::tanh(gate(3));
                    state[at] = Sigmoid(gate(1)) * std::tanh(cell[at]);
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
