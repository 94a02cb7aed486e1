#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"ReduceSum", "f2x3x4 -> f1x1x1"},
    {"ReduceSum", "f2x3x4 -> fs", "keepdims=0"},
    {"ReduceSum", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceSum", "f2x3x4 i1=[-1] -> f2x3", "keepdims=0"},
    {"ReduceSum", "f2x3x4 i2=[0,2] -> f3", "keepdims=0"},
    {"ReduceSum", "f2x3x4 i2=[0,1] -> f1x1x4"},
    {"ReduceSum", "f2x3x4 i0=[] -> f2x3x4", "noop_with_empty_axes=1"},
    {"ReduceSum", "f2x3x4 i0=[] -> f1x1x1", "noop_with_empty_axes=0"},
    {"ReduceSum", "f2x0x4 i1=[1] -> f2x1x4"},
    {"ReduceSum", "f3x1x5 i1=[1] -> f3x1x5"},
    {"ReduceSum", "f70001 -> f1", "", 1e-4},
    {"ReduceSum", "f3x30011 i1=[0] -> f1x30011"},
    {"ReduceSum", "f40007x2 i1=[0] -> f1x2", "", 1e-4},
    {"ReduceSum", "f7x600x19 i2=[0,2] -> f600", "keepdims=0"},
    {"ReduceSum", "i2x3(-9..9) i1=[1] -> i2x1"},
    {"ReduceSum", "n2x3(-9..9) i1=[0] -> n3", "keepdims=0"},
    {"ReduceSum@11", "f2x3x4 -> f2x1x4", "axes=[1]"},
    {"ReduceMean", "f2x3x4x5 i2=[2,3] -> f2x3x1x1"},
    {"ReduceMean@17", "f2x3x4 -> f2x3x1", "axes=[-1]"},
    {"ReduceMean@13", "f2x3x4 -> f1x1x1"},
    {"ReduceMean", "i2x3(-9..9) i1=[1] -> i2x1"},
    {"ReduceMax", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceMax", "f2x3x4 i1=[2] -> f2x3", "keepdims=0"},
    {"ReduceMax@13", "f2x3x4 -> f1x1x1"},
    {"ReduceMax", "f70001 -> f1"},
    {"ReduceMax", "i2x3(-9..9) i1=[1] -> i2x1"},
    {"ReduceMin", "f2x3x4 i1=[0] -> f1x3x4"},
    {"ReduceMin", "i2x3(-9..9) -> i1x1"},
    {"ReduceProd", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceProd", "f2x3 i1=[1] -> f2x1"},
    {"ReduceProd", "f3x3@[0,1,2,0,4,0,3,2,1] i1=[1] -> f3x1"},
    {"ReduceProd", "i4(1..5) -> i1"},
    {"ReduceL1", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceL2", "f2x3x4 i1=[2] -> f2x3x1"},
    {"ReduceL2@11", "f2x3x4 -> f2x3", "axes=[-1] keepdims=0"},
    {"ReduceSumSquare", "f2x3x4 i1=[1] -> f2x1x4", "", 1e-4},
    {"ReduceLogSum", "f2x3x4(0.2..2) i1=[1] -> f2x1x4"},
    {"ReduceLogSumExp", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceLogSumExp", "f2x3x4(200..300) i1=[2] -> f2x3x1"},
    {"ReduceLogSumExp", "f2x3x4 -> fs", "keepdims=0"},
    {"ReduceLogSumExp", "f70001 -> f1", "", 1e-4},
    {"CumSum", "f2x5x3 is=[1] -> f2x5x3"},
    {"CumSum", "f2x5x3 is=[-1] -> f2x5x3", "exclusive=1"},
    {"CumSum", "f2x5x3 is=[0] -> f2x5x3", "reverse=1"},
    {"CumSum", "f2x5x3 is=[1] -> f2x5x3", "reverse=1 exclusive=1"},
    {"CumSum", "i2x5(-9..9) is=[1] -> i2x5"},
    {"CumSum", "n2x5(-9..9) i1=[1] -> n2x5"},
    {"ArgMax", "f2x5x3 -> i1x5x3"},
    {"ArgMax", "f2x5x3 -> i2x3", "axis=1 keepdims=0"},
    {"ArgMax", "i6@[1,3,2,3,0,3] -> i1", "axis=0"},
    {"ArgMax", "i6@[1,3,2,3,0,3] -> i1", "axis=0 select_last_index=1"},
    {"ArgMin", "f2x5x3 -> i2x5x1", "axis=-1"},
    {"ArgMin", "n3x2 -> i3", "axis=1 keepdims=0 select_last_index=1"},
};

}  // namespace

std::span<const CaseRow> ReduceCases() { return kRows; }

}  // namespace ckplan::reference
