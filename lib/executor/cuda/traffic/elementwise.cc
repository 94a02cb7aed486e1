// Elementwise operators, copies, pools and embeddings.
#include <algorithm>
#include <array>

#include "lib/executor/cuda/traffic/kernel_list.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

namespace {

// What the instructions of an elementwise kernel access of an operand that is broadcast to `count`
// elements: neighbouring threads that need one element all read it.
int64_t AccessedOf(const Operand& operand, int64_t count) {
  if (!operand.is_present) return 0;
  return operand.elements() == count ? operand.bytes()
                                     : std::max(operand.bytes(), count * SizeOf(operand.type));
}

KernelTraffic MapOf(const OpSpec& spec) {
  KernelTraffic map;
  map.kernel = "map";
  const int64_t count = spec.output(0).elements();
  for (const Operand& input : spec.inputs) {
    map.read += BytesOf(input);
    map.accessed += AccessedOf(input, count);
  }
  for (const Operand& output : spec.outputs) map.written += BytesOf(output);
  map.accessed += map.written;
  return map;
}

Kernels ForwardMap(const OpSpec& spec) { return {MapOf(spec)}; }

bool IsWhole(const OpSpec& spec, size_t position) {
  return spec.input(position).elements() == spec.output(0).elements();
}

// A gradient computed from the output's gradient and `others`: element by element or, for an
// operand that is broadcast, by a sum.
Kernels PassOrSum(const OpSpec& spec, size_t position, int64_t others) {
  const int64_t gradient = BytesOf(spec.output(0));
  const int64_t own = BytesOf(spec.input(position));
  return {Pass(IsWhole(spec, position) ? "map of gradients" : "sum of gradients", gradient + others,
               own)};
}

Kernels BackwardOfGradient(const OpSpec& spec, size_t position) {
  return PassOrSum(spec, position, 0);
}
Kernels BackwardOfInput(const OpSpec& spec, size_t position) {
  return PassOrSum(spec, position, BytesOf(spec.input(position)));
}
Kernels BackwardOfOutput(const OpSpec& spec, size_t position) {
  return PassOrSum(spec, position, BytesOf(spec.output(0)));
}
Kernels BackwardOfOther(const OpSpec& spec, size_t position) {
  return PassOrSum(spec, position, BytesOf(spec.input(1 - position)));
}
Kernels BackwardOfDiv(const OpSpec& spec, size_t position) {
  const int64_t quotient = position == 1 ? BytesOf(spec.output(0)) : 0;
  return PassOrSum(spec, position, BytesOf(spec.input(1)) + quotient);
}
Kernels BackwardOfWhere(const OpSpec& spec, size_t position) {
  return PassOrSum(spec, position, BytesOf(spec.input(0)));
}

// The mask is drawn again, so nothing but the tensor is read.
Kernels ForwardDropout(const OpSpec& spec) {
  Kernels kernels = {Pass("map", BytesOf(spec.input(0)), BytesOf(spec.output(0)))};
  if (spec.output(1).is_present) kernels.push_back(Pass("mask", 0, BytesOf(spec.output(1))));
  return kernels;
}

// A copy; the backward pass copies back.
Kernels ForwardCopy(const OpSpec& spec) {
  int64_t moved = 0;
  for (const Operand& output : spec.outputs) moved += BytesOf(output);
  return {Pass("copy", moved, moved)};
}
Kernels BackwardCopy(const OpSpec& spec, size_t position) {
  const int64_t moved = BytesOf(spec.input(position));
  return {Pass("copy", moved, moved)};
}

Kernels ForwardGather(const OpSpec& spec) {
  const int64_t rows = BytesOf(spec.output(0));
  return {Pass("gather", rows + BytesOf(spec.input(1)), rows)};
}
// The table is cleared, and sums are added to its rows.
Kernels BackwardGather(const OpSpec& spec, size_t) {
  const int64_t rows = BytesOf(spec.output(0));
  const int64_t table = BytesOf(spec.input(0));
  const int64_t named = std::min(table, spec.output(0).elements() * SizeOf(spec.input(0).type));
  return {Pass("clear", 0, table), Pass("sums of rows", rows + named, named)};
}

Kernels ForwardPool(const OpSpec& spec) {
  return {Pass("pool", BytesOf(spec.input(0)), BytesOf(spec.output(0)) + spec.statistic_bytes)};
}
Kernels BackwardPool(const OpSpec& spec, size_t) {
  return {Pass("pool of gradients", BytesOf(spec.output(0)) + spec.statistic_bytes,
               BytesOf(spec.input(0)))};
}

constexpr TrafficRow kElementwiseRows[] = {
    {"Add", ForwardMap, BackwardOfGradient},  {"AveragePool", ForwardPool, BackwardPool},
    {"Div", ForwardMap, BackwardOfDiv},       {"Dropout", ForwardDropout, BackwardOfGradient},
    {"Erf", ForwardMap, BackwardOfInput},     {"Gather", ForwardGather, BackwardGather},
    {"Gelu", ForwardMap, BackwardOfInput},    {"GlobalAveragePool", ForwardPool, BackwardPool},
    {"IsNaN", ForwardMap, nullptr},           {"MaxPool", ForwardPool, BackwardPool},
    {"Mul", ForwardMap, BackwardOfOther},     {"Pow", ForwardMap, BackwardOfInput},
    {"Relu", ForwardMap, BackwardOfOutput},   {"Sigmoid", ForwardMap, BackwardOfOutput},
    {"Split", ForwardCopy, BackwardCopy},     {"Sqrt", ForwardMap, BackwardOfOutput},
    {"Sub", ForwardMap, BackwardOfGradient},  {"Tanh", ForwardMap, BackwardOfOutput},
    {"Transpose", ForwardCopy, BackwardCopy}, {"Where", ForwardMap, BackwardOfWhere},
};

}  // namespace

const TrafficRow* FindElementwiseRow(std::string_view type) {
  const auto* const found = std::find_if(std::begin(kElementwiseRows), std::end(kElementwiseRows),
                                         [&](const TrafficRow& row) { return row.type == type; });
  return found == std::end(kElementwiseRows) ? nullptr : found;
}

}  // namespace ckplan::cuda
