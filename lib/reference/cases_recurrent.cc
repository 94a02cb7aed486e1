#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
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

std::span<const CaseRow> RecurrentCases() { return kRows; }

}  // namespace ckplan::reference
