#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"ConstantOfShape", "i2=[2,3] -> f2x3"},
    {"ConstantOfShape", "i2=[2,3] -> f2x3", "value={-1.5}"},
    {"ConstantOfShape", "i1=[20001] -> i20001", "value={-7}"},
    {"ConstantOfShape", "i1=[3] -> n3", "value={-7}"},
    {"ConstantOfShape", "i1=[3] -> b3", "value={1}"},
    {"Shape", "f2x3x4 -> i3"},
    {"Shape", "f2x3x4 -> i2", "start=1"},
    {"Shape", "f2x3x4 -> i1", "start=-2 end=-1"},
    {"Size", "f2x3x4 -> is"},
    {"Range", "is@[3] is@[12] is@[2] -> i5"},
    {"Range", "ns@[3] ns@[-5] ns@[-3] -> n3"},
    {"Range", "fs@[0.5] fs@[2.6] fs@[0.25] -> f9"},
    {"OneHot", "i4@[0,2,-1,9] is=[3] f2@[-1,5] -> f4x3"},
    {"OneHot", "i2x2(0..2) is=[3] f2@[0,1] -> f2x3x2", "axis=1"},
    {"OneHot", "n3@[0,1,2] is=[3] i2@[0,1] -> i3x3", "axis=0"},
    {"OneHot", "f2@[0,1] is=[2] b2@[0,1] -> b2x2"},
    {"EyeLike", "f3x4 -> f3x4"},
    {"EyeLike", "f3x4 -> i3x4", "k=1"},
    {"EyeLike", "i4x3 -> b4x3", "k=-2"},
};

}  // namespace

std::span<const CaseRow> GenerateCases() { return kRows; }

}  // namespace ckplan::reference
