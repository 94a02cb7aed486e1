// Data movement: each output element by the place in the input that it comes from.
#include <algorithm>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

std::vector<int64_t> Ints(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (const double value : tensor.values) values.push_back(static_cast<int64_t>(value));
  return values;
}

// The contents of an input, or of the attribute that older opsets have in its place.
std::vector<int64_t> IntsOf(const OpSpec& spec, std::span<const Tensor> inputs, size_t input,
                            std::string_view attribute) {
  if (input < inputs.size() && inputs[input].is_present) return Ints(inputs[input]);
  return spec.Ints(attribute);
}

size_t NormalAxis(int64_t axis, const Tensor& tensor) {
  return static_cast<size_t>(axis < 0 ? axis + tensor.rank() : axis);
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

void Trilu(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const bool is_upper = spec.Int("upper", 1) != 0;
  const double k = inputs.size() > 1 && inputs[1].is_present ? inputs[1][0] : 0;
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const auto distance = static_cast<double>(index.back() - index[index.size() - 2]);
    const bool is_kept = is_upper ? distance >= k : distance <= k;
    outputs[0][i] = is_kept ? inputs[0][i] : 0;
  });
}

constexpr FunctionRow kRows[] = {
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
    {"Concat", Concat},
    {"Split", Split},
    {"Trilu", Trilu},
};

}  // namespace

std::span<const FunctionRow> MoveFunctions() { return kRows; }

}  // namespace ckplan::reference
