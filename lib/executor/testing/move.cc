// Transposes, slices, blocks, repetitions and views.
#include <algorithm>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// Axes of data movements.

size_t NormalAxis(int64_t axis, const Tensor& tensor) {
  return static_cast<size_t>(axis < 0 ? axis + tensor.rank() : axis);
}

std::vector<int64_t> Ints(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (const double value : tensor.values) values.push_back(ToInteger(value));
  return values;
}

// Returns the contents of an input, or of the attribute that older opsets use instead.
std::vector<int64_t> IntsOf(const OpSpec& spec, std::span<const Tensor> inputs, size_t input,
                            std::string_view attribute) {
  if (input < inputs.size() && inputs[input].is_present) return Ints(inputs[input]);
  return spec.Ints(attribute);
}

void View(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  outputs[0].values = inputs[0].values;
}

void Transpose(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::vector<int64_t> perm = spec.Ints("perm");
  for (int64_t axis = inputs[0].rank(); perm.size() < inputs[0].dims.size();)
    perm.push_back(--axis);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    for (size_t axis = 0; axis < perm.size(); ++axis) {
      from[NormalAxis(perm[axis], inputs[0])] = index[axis];
    }
    outputs[0][i] = inputs[0][Offset(inputs[0], from)];
  });
}

void Slice(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const std::vector<int64_t> starts = IntsOf(spec, inputs, 1, "starts");
  const std::vector<int64_t> axes = IntsOf(spec, inputs, 3, "axes");
  const std::vector<int64_t> steps = IntsOf(spec, inputs, 4, "steps");
  std::vector<int64_t> first(x.dims.size(), 0), step(x.dims.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = axes.empty() ? i : NormalAxis(axes[i], x);
    if (!steps.empty()) step[axis] = steps[i];
    const int64_t start = starts[i] < 0 ? starts[i] + x.dims[axis] : starts[i];
    const int64_t last = step[axis] < 0 ? x.dims[axis] - 1 : x.dims[axis];
    first[axis] = std::max<int64_t>(0, std::min(start, last));
  }
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      from[axis] = first[axis] + index[axis] * step[axis];
    }
    outputs[0][i] = x[Offset(x, from)];
  });
}

void DepthToSpace(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t block = spec.Int("blocksize", 1);
  const int64_t channels = outputs[0].dim(1);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const int64_t place = index[2] % block * block + index[3] % block;
    const int64_t channel = spec.String("mode", "DCR") == "DCR" ? place * channels + index[1]
                                                                : index[1] * block * block + place;
    outputs[0][i] =
        inputs[0][Offset(inputs[0], {index[0], channel, index[2] / block, index[3] / block})];
  });
}

void SpaceToDepth(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t block = spec.Int("blocksize", 1);
  const int64_t channels = inputs[0].dim(1);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const int64_t place = index[1] / channels;
    outputs[0][i] = inputs[0][Offset(
        inputs[0], {index[0], index[1] % channels, index[2] * block + place / block,
                    index[3] * block + place % block})];
  });
}

void Expand(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    outputs[0][i] = inputs[0][Offset(inputs[0], index)];
  });
}

void Tile(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    for (size_t axis = 0; axis < from.size(); ++axis) from[axis] %= inputs[0].dims[axis];
    outputs[0][i] = inputs[0][Offset(inputs[0], from)];
  });
}

constexpr FunctionRow kMoveReferences[] = {
    {"Identity", View},
    {"Reshape", View},
    {"Flatten", View},
    {"Squeeze", View},
    {"Unsqueeze", View},
    {"Transpose", Transpose},
    {"Slice", Slice},
    {"DepthToSpace", DepthToSpace},
    {"SpaceToDepth", SpaceToDepth},
    {"Expand", Expand},
    {"Tile", Tile},
};

constexpr CaseRow kMoveCases[] = {
    {"Identity", "f2x3 -> f2x3"},
    {"Reshape", "f2x3x4 i2=[2,12] -> f2x12"},
    {"Reshape", "i2x3 i1=[6] -> i6"},
    {"Flatten", "f2x3x4 -> f2x12"},
    {"Squeeze", "f2x1x4 i1=[1] -> f2x4"},
    {"Unsqueeze", "f2x4 i1=[1] -> f2x1x4"},
    {"Unsqueeze", "b4 i1=[0] -> b1x4"},
    {"Transpose", "f2x3 -> f3x2"},
    {"Transpose", "f2x3x4 -> f4x3x2"},
    {"Transpose", "f2x3x4x5 -> f2x4x3x5", "perm=[0,2,1,3]"},
    {"Transpose", "f2x3x4x5 -> f2x4x5x3", "perm=[0,2,3,1]"},
    {"Transpose", "f2x3x4x5 -> f5x2x4x3", "perm=[3,0,2,1]"},
    {"Transpose", "f2x3x4x5 -> f2x3x5x4", "perm=[0,1,3,2]"},
    {"Transpose", "f67x71 -> f71x67", "perm=[1,0]"},
    {"Transpose", "f3x130x70 -> f3x70x130", "perm=[0,2,1]"},
    {"Transpose", "f1x3x1x4 -> f4x1x1x3", "perm=[3,0,2,1]"},
    {"Transpose", "i2x3(-9..9) -> i3x2"},
    {"Transpose", "b5x9 -> b9x5"},
    {"Transpose", "b2x40x33x3 -> b3x33x2x40", "perm=[3,2,0,1]"},
    {"Transpose", "i9x35(-9..9) -> i35x9"},
    {"Transpose", "f0x3 -> f3x0"},
    {"Transpose", "fs -> fs"},
    {"Slice", "f5x6 i1=[1] i1=[4] i1=[0] -> f3x6"},
    {"Slice", "f5x6 i1=[1] i1=[4] i1=[1] -> f5x3"},
    {"Slice", "f5x6 i2=[1,2] i2=[4,100] -> f3x4"},
    {"Slice", "f5x6 i1=[-3] i1=[9223372036854775807] i1=[-1] -> f5x3"},
    {"Slice", "f5x6 i2=[0,1] i2=[5,6] i2=[0,1] i2=[2,3] -> f3x2"},
    {"Slice", "f5x6 i1=[-1] i1=[-9223372036854775807] i1=[1] i1=[-1] -> f5x6"},
    {"Slice", "f5x6 i1=[4] i1=[0] i1=[0] i1=[-2] -> f2x6"},
    {"Slice", "f5x6 i1=[2] i1=[3] i1=[1] i1=[9223372036854775807] -> f5x1"},
    {"Slice", "f5x6 i1=[3] i1=[3] i1=[1] -> f5x0"},
    {"Slice", "f2x3x40x50 i2=[1,3] i2=[39,44] i2=[2,3] -> f2x3x38x41"},
    {"Slice", "i7 i1=[2] i1=[5] i1=[0] -> i3"},
    {"Slice@9", "f5x6 -> f3x6", "starts=[1] ends=[4] axes=[0]"},
    {"Slice@1", "f5x6 -> f3x2", "starts=[1,-2] ends=[4,9]"},
    {"DepthToSpace", "f2x12x2x3 -> f2x3x4x6", "blocksize=2"},
    {"DepthToSpace", "f2x12x2x3 -> f2x3x4x6", "blocksize=2 mode='CRD'"},
    {"DepthToSpace", "f1x9x5x7 -> f1x1x15x21", "blocksize=3 mode='DCR'"},
    {"SpaceToDepth", "f2x3x4x6 -> f2x12x2x3", "blocksize=2"},
    {"SpaceToDepth", "f1x2x9x6 -> f1x18x3x2", "blocksize=3"},
    {"Expand", "f3x1 i2=[3,4] -> f3x4"},
    {"Expand", "f3 i2=[2,3] -> f2x3"},
    {"Expand", "fs i2=[2,3] -> f2x3"},
    {"Expand", "f1x1x5 i3=[2,3,5] -> f2x3x5"},
    {"Expand", "f2x1x3x1 i4=[2,4,3,5] -> f2x4x3x5"},
    {"Expand", "f2x3 i2=[1,1] -> f2x3"},
    {"Expand", "f1x5 i2=[20001,1] -> f20001x5"},
    {"Expand", "i1x3 i2=[2,3] -> i2x3"},
    {"Expand", "b1 i1=[5] -> b5"},
    {"Tile", "f2x3 i2=[2,1] -> f4x3"},
    {"Tile", "f2x3 i2=[2,3] -> f4x9"},
    {"Tile", "f1x3 i2=[4,1] -> f4x3"},
    {"Tile", "f2x3x2 i3=[1,2,1] -> f2x6x2"},
    {"Tile", "i2 i1=[3] -> i6"},
    {"Tile", "f2 i1=[0] -> f0"},
};

}  // namespace

std::span<const FunctionRow> MoveReferences() { return kMoveReferences; }
std::span<const CaseRow> MoveCases() { return kMoveCases; }

// Concat and Split.

namespace {

void Concat(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const size_t axis = NormalAxis(spec.Int("axis", 1), outputs[0]);
  int64_t begin = 0;
  for (const Tensor& input : inputs) {
    ForEach(input.dims, [&](const Index& index, int64_t i) {
      Index to = index;
      to[axis] += begin;
      outputs[0][Offset(outputs[0], to)] = input[i];
    });
    begin += input.dims[axis];
  }
}

void Split(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const size_t axis = NormalAxis(spec.Int("axis", 0), inputs[0]);
  int64_t begin = 0;
  for (Tensor& output : outputs) {
    ForEach(output.dims, [&](const Index& index, int64_t i) {
      Index from = index;
      from[axis] += begin;
      output[i] = inputs[0][Offset(inputs[0], from)];
    });
    begin += output.dims[axis];
  }
}

constexpr FunctionRow kJoinReferences[] = {
    {"Concat", Concat},
    {"Split", Split},
};

constexpr CaseRow kJoinCases[] = {
    {"Concat", "f2x3 f2x4 -> f2x7", "axis=1"},
    {"Concat", "f2x3 f1x3 f4x3 -> f7x3", "axis=0"},
    {"Concat", "f2x3x2 f2x1x2 -> f2x4x2", "axis=-2"},
    {"Concat", "f2x3 -> f2x3", "axis=1"},
    {"Concat", "f2x0 f2x4 -> f2x4", "axis=1"},
    {"Concat", "i2(0..9) i1(0..9) -> i3", "axis=0"},
    {"Concat", "b2x3 b2x1 -> b2x4", "axis=1"},
    {"Concat", "f3x3000 f3x9000~ -> f3x12000", "axis=1"},
    {"Split", "f6x2 -> f2x2 f2x2 f2x2", "axis=0"},
    {"Split", "f2x6 i2=[2,4] -> f2x2 f2x4", "axis=1"},
    {"Split@2", "f2x6x2 -> f2x1x2 f2x5x2", "axis=-2 split=[1,5]"},
    {"Split", "f7 -> f3 f3 f1", "num_outputs=3"},
    {"Split", "i7 i2=[3,4] -> i3 i4"},
    {"Split", "f2x4 i2=[4,0] -> f2x4 f2x0", "axis=1"},
};

}  // namespace

std::span<const FunctionRow> JoinReferences() { return kJoinReferences; }
std::span<const CaseRow> JoinCases() { return kJoinCases; }

// ReverseSequence.

namespace {

void ReverseSequence(const OpSpec& spec, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const auto batch = static_cast<size_t>(spec.Int("batch_axis", 1));
  const auto time = static_cast<size_t>(spec.Int("time_axis", 0));
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const auto length = static_cast<int64_t>(inputs[1][index[batch]]);
    Index from = index;
    if (index[time] < length) from[time] = length - 1 - index[time];
    outputs[0][i] = inputs[0][Offset(inputs[0], from)];
  });
}

constexpr FunctionRow kReverseReferences[] = {
    {"ReverseSequence", ReverseSequence},
};

constexpr CaseRow kReverseCases[] = {
    {"ReverseSequence", "f4x3 i3@[4,2,0] -> f4x3"},
    {"ReverseSequence", "f2x5x3 i2@[3,5] -> f2x5x3", "batch_axis=0 time_axis=1"},
    {"ReverseSequence", "i4x2(0..9) i2@[1,3] -> i4x2"},
};

}  // namespace

std::span<const FunctionRow> ReverseReferences() { return kReverseReferences; }
std::span<const CaseRow> ReverseCases() { return kReverseCases; }

}  // namespace ckplan::reference
