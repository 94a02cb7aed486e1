// Normalisations and softmax: reductions and passes over the same tensors.
#include <algorithm>

#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/traffic/kernel_list.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan::cuda {

namespace {

bool IsFirstGradient(const OpSpec& spec, size_t position) {
  for (size_t i = 0; i < position; ++i) {
    if (spec.input(i).has_gradient) return false;
  }
  return true;
}

// What the threads read of the channels, from the cache: so many floats for each kWide elements.
int64_t ChannelTerms(const OpSpec& spec, int64_t floats) {
  return spec.input(0).elements() / kWide * floats * SizeOf(ElementType::kFloat32);
}

Kernels ForwardBatchNorm(const OpSpec& spec) {
  constexpr int64_t kTerms = 4;  // Mean, inverse deviation, scale and bias.
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  return {Pass("moments", x, 0), Cached("normalise", x, y, x + y + ChannelTerms(spec, kTerms))};
}
Kernels BackwardBatchNorm(const OpSpec& spec, size_t position) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t dy = BytesOf(spec.output(0));
  Kernels kernels;
  if (IsFirstGradient(spec, position)) kernels.push_back(Pass("sums of gradients", x + dy, 0));
  if (position == 0) {
    constexpr int64_t kTerms = 5;  // Moments, two sums and the scale.
    kernels.push_back(Cached("gradient", x + dy, x, 2 * x + dy + ChannelTerms(spec, kTerms)));
  } else {
    kernels.push_back(Pass("gradient of channels", 0, BytesOf(spec.input(position))));
  }
  return kernels;
}

// The length of the rows that a layer normalisation normalises.
int64_t RowLength(const OpSpec& spec) {
  const auto& dims = spec.input(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += rank;
  int64_t length = 1;
  for (int64_t i = std::max<int64_t>(axis, 0); i < rank; ++i)
    length *= dims[static_cast<size_t>(i)];
  return length;
}
bool HoldsRows(const OpSpec& spec) { return CanHoldRow(RowLength(spec)); }

bool HoldsLines(const OpSpec& softmax) {
  const auto view = ReadSoftmaxShape(softmax);
  return view.ok() && view->inner == 1 && CanHoldRow(view->size);
}

// A warp that holds its row reads it once; a larger team three times, the last two times from the
// cache. Scales and biases are in the cache, too.
Kernels ForwardLayerNorm(const OpSpec& spec) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  const int64_t terms = spec.input(0).elements() * SizeOf(spec.input(1).type) *
                        (static_cast<int64_t>(spec.inputs.size()) - 1);
  return {Cached("rows", x, y, (HoldsRows(spec) ? 1 : 3) * x + y + terms)};
}
// The gradients of scales and biases are summed together if both are wanted.
Kernels BackwardLayerNorm(const OpSpec& spec, size_t position) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t dy = BytesOf(spec.output(0));
  const int64_t terms = spec.input(0).elements() * SizeOf(spec.input(1).type);
  const int64_t result = BytesOf(spec.input(position));
  if (position == 0) {
    // A team reads a row of gradients three times, as each term of two sums names it.
    return {Cached("gradient of rows", x + dy, x,
                   HoldsRows(spec) ? x + dy + x + terms : 2 * x + 3 * dy + x + 3 * terms)};
  }
  if (position == 1) return {Pass("gradients of columns", x + dy, result)};
  if (spec.input(1).has_gradient) return {Pass("gradient of biases", result, result)};
  return {Pass("gradient of biases", dy, result)};
}

Kernels ForwardSoftmax(const OpSpec& spec) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  return {Cached("rows", x, y, (HoldsLines(spec) ? 1 : 3) * x + y)};
}
Kernels BackwardSoftmax(const OpSpec& spec, size_t) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  return {Cached("gradient of rows", 2 * y, x, (HoldsLines(spec) ? 2 : 4) * y + x)};
}

constexpr TrafficRow kNormRows[] = {
    {"BatchNormalization", ForwardBatchNorm, BackwardBatchNorm},
    {"LayerNormalization", ForwardLayerNorm, BackwardLayerNorm},
    {"LogSoftmax", ForwardSoftmax, BackwardSoftmax},
    {"Softmax", ForwardSoftmax, BackwardSoftmax},
};

}  // namespace

const TrafficRow* FindNormRow(std::string_view type) {
  const auto* const found = std::find_if(std::begin(kNormRows), std::end(kNormRows),
                                         [&](const TrafficRow& row) { return row.type == type; });
  return found == std::end(kNormRows) ? nullptr : found;
}

}  // namespace ckplan::cuda
