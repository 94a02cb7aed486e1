#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"Gather", "f5x3 i4@[0,2,2,4] -> f4x3", "axis=0"},
    {"Gather", "f5x3 i2x2@[0,-1,2,0] -> f2x2x3", "axis=0"},
    {"Gather", "f2x5x3 i4@[4,2,2,0] -> f2x4x3", "axis=1"},
    {"Gather", "f2x5x3 is@[1] -> f2x3", "axis=1"},
    {"Gather", "f2x5x3 i1=[2] -> f2x5x1", "axis=-1"},
    {"Gather", "f2x5 n3@[0,4,-5] -> f2x3", "axis=1"},
    {"Gather", "f4x3 i3@[0,9,-9] -> f3x3"},
    {"Gather", "f211x97 i300(0..210) -> f300x97", "axis=0"},
    {"Gather", "f3x70x40 i9(-70..69) -> f3x9x40", "axis=1"},
    {"Gather", "f2x3 i300(0..1) -> f300x3", "axis=0"},
    {"Gather", "f2x4x3 i200(0..0) -> f2x200x3", "axis=1"},
    {"Gather", "f2x4x8 i200(0..1) -> f2x200x8", "axis=1"},
    {"Gather", "i5(0..99) i2x2@[0,4,2,2] -> i2x2"},
    {"Gather", "b5 i2@[4,0] -> b2"},
    {"Gather", "f5x0 i2@[4,0] -> f2x0"},
    {"Gather", "f0x3 i0@[] -> f0x3"},
    {"GatherElements", "f3x4 i3x4(0..2) -> f3x4", "axis=0"},
    {"GatherElements", "f3x4 i3x2(-4..3) -> f3x2", "axis=1"},
    {"GatherElements", "f5x4x3 i2x4x3(0..4) -> f2x4x3", "axis=0"},
    {"GatherElements", "f5x4x3 i5x9x2(0..3) -> f5x9x2", "axis=-2"},
    {"GatherElements", "f5x1x3 i2x1x2(0..2) -> f2x1x2", "axis=2"},
    {"GatherElements", "f300x70 i300x90(0..69) -> f300x90", "axis=1"},
    {"GatherElements", "i4(0..9) n2@[3,-1] -> i2", "axis=0"},
    {"GatherND", "f3x4 i5x2@[0,0,2,3,1,1,2,3,-1,-1] -> f5"},
    {"GatherND", "f3x4 i2x1@[2,0] -> f2x4"},
    {"GatherND", "f3x4x2 i2x2x2@[0,0,2,3,1,1,2,3] -> f2x2x2"},
    {"GatherND", "f2x3x4 i2x2x1(0..2) -> f2x2x4", "batch_dims=1"},
    {"GatherND", "f2x3x4 i2x3x1(0..3) -> f2x3", "batch_dims=2"},
    {"GatherND", "f2x3x4 i2x5x2(0..2) -> f2x5", "batch_dims=1"},
    {"GatherND", "f150x120 i500x1(0..149) -> f500x120"},
    {"GatherND", "b3x4 i2x2@[0,0,2,3] -> b2"},
    {"ScatterElements", "f3x4 i2x4@[0,1,2,0,1,0,0,2] f2x4 -> f3x4", "axis=0"},
    {"ScatterElements", "f3x4 i3x2@[0,-1,2,1,3,0] f3x2 -> f3x4", "axis=1"},
    {"ScatterElements", "f3x4 i3x3(0..3) f3x3 -> f3x4", "axis=1 reduction='add'"},
    {"ScatterElements", "f5x3x4 i5x7x4(0..2) f5x7x4 -> f5x3x4", "axis=1 reduction='add'"},
    {"ScatterElements", "f3x4~ i3x3(0..3) f3x3~ -> f3x4", "axis=1 reduction='mul'"},
    {"ScatterElements", "f3x4~ i3x3(0..3) f3x3~ -> f3x4", "axis=1 reduction='max'"},
    {"ScatterElements", "n3x4(0..9) i3x3(0..3) n3x3(0..9) -> n3x4", "axis=1 reduction='min'"},
    {"ScatterElements", "i4(0..9) n2@[3,0] i2(0..9) -> i4"},
    {"Scatter@10", "f3x4 i2x4@[0,1,2,0,1,0,0,2] f2x4 -> f3x4", "axis=0"},
    {"ScatterND", "f5x3 i2x1@[3,0] f2x3 -> f5x3"},
    {"ScatterND", "f5x3 i2x2@[3,0,-1,2] f2 -> f5x3"},
    {"ScatterND", "f4x3x2 i2x1x2@[3,0,1,2] f2x1x2 -> f4x3x2"},
    {"ScatterND", "f5x3 i4x1@[3,0,3,3] f4x3 -> f5x3", "reduction='add'"},
    {"ScatterND", "f150x120 i200x1(0..149) f200x120 -> f150x120", "reduction='add'"},
    {"ScatterND", "f3x2 i150x1(1..1) f150x2 -> f3x2", "reduction='add'"},
    {"ScatterND", "f3x2~ i150x1(0..2) f150x2~ -> f3x2"},
    {"ScatterND", "f5x3~ i4x1@[3,0,3,3] f4x3~ -> f5x3", "reduction='mul'"},
    {"ScatterND", "f5x3~ i4x1@[3,0,3,3] f4x3~ -> f5x3", "reduction='max'"},
    {"ScatterND", "i5(0..9) i4x1@[3,0,3,3] i4(0..9) -> i5", "reduction='min'"},
    {"ScatterND", "i5(0..9) i2x1@[3,7] i2(0..9) -> i5"},
    {"ScatterND", "b5 i2x1@[3,1] b2 -> b5"},
};

}  // namespace

std::span<const CaseRow> GatherCases() { return kRows; }

}  // namespace ckplan::reference
