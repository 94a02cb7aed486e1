// GRU.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/recurrent.h"

namespace ckplan::reference {

namespace {

void Gru(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const bool resets_after = spec.Int("linear_before_reset", 0) != 0;
  RunRecurrence(spec, inputs, outputs,
                [resets_after](const Recurrent& r, int64_t d, int64_t t, int64_t n,
                               std::vector<double>& state, std::vector<double>&) {
                  const std::vector<double> before = state;
                  const auto gate = [&](int64_t row) {
                    return Sigmoid(r.Input(d, row, t, n) + r.Recurrence(d, row, before));
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

}  // namespace ckplan::reference
