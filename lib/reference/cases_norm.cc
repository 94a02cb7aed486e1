#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"BatchNormalization", "f3x4x5x6 f4! f4! f4* f4* -> f3x4x5x6"},
    {"BatchNormalization", "f3x4x5x6~ f4! f4! f4* f4* -> f3x4x5x6", "epsilon=0.01"},
    {"BatchNormalization", "f3x4x5x6 f4! f4! f4* f4* -> f3x4x5x6", "training_mode=1"},
    {"BatchNormalization", "f3x4x5x6* f4* f4* f4* f4* -> f3x4x5x6 f4 f4", "training_mode=1"},
    {"BatchNormalization", "f7x4 f4! f4! f4* f4* -> f7x4"},
    {"BatchNormalization", "f7x4x9 f4! f4! f4* f4* -> f7x4x9"},
    {"BatchNormalization", "f2x3x2x3x4 f3! f3! f3* f3* -> f2x3x2x3x4"},
    {"BatchNormalization", "f1x2x60x60 f2! f2! f2* f2* -> f1x2x60x60"},
    {"BatchNormalization", "f8x2x40x60(9..11) f2! f2! f2* f2* -> f8x2x40x60", "", 5e-5},
    {"BatchNormalization", "f700x9 f9! f9! f9* f9* -> f700x9"},
    {"LayerNormalization", "f2x3x8 f8! f8! -> f2x3x8"},
    {"LayerNormalization", "f2x3x8 f8! -> f2x3x8", "epsilon=0.01"},
    {"LayerNormalization", "f2x3x4 f3x4! f3x4! -> f2x3x4", "axis=1"},
    {"LayerNormalization", "f2x3x4~ f4! f4! -> f2x3x4", "axis=2"},
    {"LayerNormalization", "f100x70 f70! f70! -> f100x70"},
    {"LayerNormalization", "f700x8 f8! f8! -> f700x8"},
    {"LayerNormalization", "f2x17000 f17000! f17000! -> f2x17000"},
    {"LayerNormalization", "f2x3x8* f8* f8* -> f2x3x8 f2x3x1 f2x3x1"},
    {"LayerNormalization", "f2x2x33(99..101) f33! f33! -> f2x2x33", "", 5e-5},
    {"RMSNormalization@23", "f2x3x8 f8! -> f2x3x8"},
    {"RMSNormalization@23", "f2x3x4 f3x4! -> f2x3x4", "axis=1 epsilon=0.1"},
    {"RMSNormalization@23", "f50x70 f70! -> f50x70"},
    {"InstanceNormalization", "f2x3x4x5 f3! f3! -> f2x3x4x5"},
    {"InstanceNormalization", "f2x3x7 f3! f3! -> f2x3x7", "epsilon=0.01"},
    {"InstanceNormalization", "f1x2x60x60 f2! f2! -> f1x2x60x60"},
    {"InstanceNormalization", "f8x2x40x60 f2! f2! -> f8x2x40x60"},
    {"GroupNormalization@18", "f2x6x4x5 f3! f3! -> f2x6x4x5", "num_groups=3"},
    {"GroupNormalization@21", "f2x6x4x5 f6! f6! -> f2x6x4x5", "num_groups=3"},
    {"GroupNormalization@21", "f2x4x3 f4! f4! -> f2x4x3", "num_groups=1 epsilon=0.1"},
    {"MeanVarianceNormalization", "f3x4x2x5 -> f3x4x2x5"},
    {"MeanVarianceNormalization", "f3x4x2x5 -> f3x4x2x5", "axes=[2,3]"},
    {"MeanVarianceNormalization", "f3x4x5 -> f3x4x5", "axes=[0]"},
    {"MeanVarianceNormalization", "f3x4 -> f3x4", "axes=[0,-1]"},
    {"LRN", "f2x7x3x4 -> f2x7x3x4", "size=5 alpha=0.5 beta=0.75 bias=1.0"},
    {"LRN", "f2x6x5 -> f2x6x5", "size=4 alpha=0.3 beta=0.5 bias=2.0"},
    {"LRN", "f1x3x9x9 -> f1x3x9x9", "size=3"},
    {"Softmax", "f3x7 -> f3x7"},
    {"Softmax", "f2x3x40 -> f2x3x40", "axis=-1"},
    {"Softmax", "f3x600 -> f3x600"},
    {"Softmax", "f2x17000 -> f2x17000"},
    {"Softmax", "f2x5x3x4 -> f2x5x3x4", "axis=1"},
    {"Softmax", "f3x70 -> f3x70", "axis=0"},
    {"Softmax", "f100x9 -> f100x9", "axis=0"},
    {"Softmax", "f9 -> f9"},
    {"Softmax", "f2x8(-80..80) -> f2x8"},
    {"Softmax@12", "f2x3x4 -> f2x3x4"},
    {"Softmax@9", "f2x3x4 -> f2x3x4", "axis=2"},
    {"Softmax@11", "f2x3x4 -> f2x3x4", "axis=0"},
    {"Softmax", "f2x4~@[1,-inf,0,2,-inf,-inf,-inf,-inf] -> f2x4"},
    {"Softmax", "f4x2~@[1,-inf,-inf,-inf,0,-inf,3,-inf] -> f4x2", "axis=0"},
    {"LogSoftmax", "f3x7 -> f3x7"},
    {"LogSoftmax", "f2x3x40(-60..60) -> f2x3x40", "axis=2"},
    {"LogSoftmax", "f2x5x3x4 -> f2x5x3x4", "axis=1"},
    {"LogSoftmax@12", "f2x3x4 -> f2x3x4"},
};

}  // namespace

std::span<const CaseRow> NormCases() { return kRows; }

}  // namespace ckplan::reference
