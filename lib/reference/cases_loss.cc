#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,0,2] -> fs"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,0,2] -> fs f3x5"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,0,2] f5*(0.5..2) -> fs f3x5", "reduction='mean'"},
    {"SoftmaxCrossEntropyLoss", "f3x5 n3@[4,0,2] -> f3 f3x5", "reduction='none'"},
    {"SoftmaxCrossEntropyLoss", "f2x5x3 i2x3(0..4) f5*(0.5..2) -> f2x3", "reduction='none'"},
    {"SoftmaxCrossEntropyLoss", "f2x5x3x2 i2x3x2(0..4) -> fs", "reduction='sum' ignore_index=2"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,-1,2] f5*(0.5..2) -> fs", "ignore_index=-1"},
    {"SoftmaxCrossEntropyLoss", "f600x90(-9..9) i600(0..89) -> fs f600x90"},
    {"SoftmaxCrossEntropyLoss", "f9000x2 i9000(0..1) -> fs"},
    {"NegativeLogLikelihoodLoss", "f3x5 i3@[4,0,2] -> fs"},
    {"NegativeLogLikelihoodLoss", "f3x5 i3@[4,0,2] f5*(0.5..2) -> fs"},
    {"NegativeLogLikelihoodLoss", "f2x5x3 i2x3(0..4) -> f2x3", "reduction='none'"},
    {"NegativeLogLikelihoodLoss", "f2x5x3 n2x3(0..4) f5* -> fs", "reduction='sum'"},
    {"NegativeLogLikelihoodLoss", "f2x5x3 i2x3(0..4) -> fs", "ignore_index=0"},
};

}  // namespace

std::span<const CaseRow> LossCases() { return kRows; }

}  // namespace ckplan::reference
