// Normalisations and softmax: reductions and passes over the same tensors.
#include <algorithm>

#include "lib/cuda/traffic/kernel_list.h"

namespace ckplan::cuda {

namespace {

bool IsFirstGradient(const OpSpec& spec, size_t position) {
  for (size_t i = 0; i < position; ++i) {
    if (spec.input(i).has_gradient) return false;
  }
  return true;
}

Kernels ForwardBatchNorm(const OpSpec& spec) {
  const int64_t x = BytesOf(spec.input(0));
  return {Pass("mean", x, 0), Pass("variance", x, 0),
          Pass("normalise", x, BytesOf(spec.output(0)))};
}
Kernels BackwardBatchNorm(const OpSpec& spec, size_t position) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t dy = BytesOf(spec.output(0));
  Kernels kernels;
  if (IsFirstGradient(spec, position)) kernels.push_back(Pass("sums of gradients", x + dy, 0));
  if (position == 0) {
    kernels.push_back(Pass("gradient", x + dy, x));
  } else {
    kernels.push_back(Pass("gradient of channels", 0, BytesOf(spec.input(position))));
  }
  return kernels;
}

// A team reads its row three times, and the last two times from the cache.
Kernels ForwardLayerNorm(const OpSpec& spec) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  const int64_t terms = spec.input(0).elements() * SizeOf(spec.input(1).type) *
                        (static_cast<int64_t>(spec.inputs.size()) - 1);
  return {Cached("rows", x, y, 3 * x + y + terms)};
}
Kernels BackwardLayerNorm(const OpSpec& spec, size_t position) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t dy = BytesOf(spec.output(0));
  const int64_t terms = spec.input(0).elements() * SizeOf(spec.input(1).type);
  if (position == 0) {
    // The gradient of a row is read three times, as each term of two sums names it.
    return {Cached("gradient of rows", x + dy, x, 2 * x + 3 * dy + x + 3 * terms)};
  }
  if (position == 1) return {Pass("gradient of scales", x + dy, BytesOf(spec.input(1)))};
  return {Pass("gradient of biases", dy, BytesOf(spec.input(2)))};
}

Kernels ForwardSoftmax(const OpSpec& spec) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  return {Cached("rows", x, y, 3 * x + y)};
}
Kernels BackwardSoftmax(const OpSpec& spec, size_t) {
  const int64_t x = BytesOf(spec.input(0));
  const int64_t y = BytesOf(spec.output(0));
  return {Cached("gradient of rows", 2 * y, x, 4 * y + x)};
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
