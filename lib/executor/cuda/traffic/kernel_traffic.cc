#include "lib/executor/cuda/traffic/kernel_traffic.h"

#include "lib/executor/cuda/traffic/kernel_list.h"

namespace ckplan::cuda {

namespace {

const TrafficRow* FindRow(std::string_view type) {
  for (const auto find : {FindDenseRow, FindNormRow, FindElementwiseRow}) {
    if (const TrafficRow* row = find(type)) return row;
  }
  return nullptr;
}

// What backward may read of one operand.
int64_t ReadByBackward(const std::vector<Operand>& operands) {
  int64_t bytes = 0;
  for (const Operand& operand : operands) {
    if (operand.is_read_by_backward) bytes += BytesOf(operand);
  }
  return bytes;
}

int64_t GradientsOfOutputs(const OpSpec& spec) {
  int64_t bytes = 0;
  for (const Operand& output : spec.outputs) {
    if (output.has_gradient) bytes += BytesOf(output);
  }
  return bytes;
}

}  // namespace

bool IsModelled(std::string_view type) { return FindRow(type) != nullptr; }

Kernels ForwardKernels(const OpSpec& spec) {
  if (const TrafficRow* row = FindRow(spec.type)) return row->forward(spec);
  return {Pass("unknown", LeastForward(spec), 0)};
}

Kernels BackwardKernels(const OpSpec& spec, size_t position) {
  const TrafficRow* row = FindRow(spec.type);
  if (row != nullptr && row->backward != nullptr) return row->backward(spec, position);
  return {Pass("unknown",
               ReadByBackward(spec.inputs) + ReadByBackward(spec.outputs) +
                   GradientsOfOutputs(spec) + spec.statistic_bytes,
               BytesOf(spec.input(position)))};
}

int64_t LeastForward(const OpSpec& spec) {
  int64_t bytes = spec.statistic_bytes;
  for (const Operand& input : spec.inputs) bytes += BytesOf(input);
  for (const Operand& output : spec.outputs) bytes += BytesOf(output);
  return bytes;
}

int64_t LeastBackward(const OpSpec& spec) {
  int64_t bytes = ReadByBackward(spec.inputs) + ReadByBackward(spec.outputs) +
                  GradientsOfOutputs(spec) + spec.statistic_bytes;
  for (const Operand& input : spec.inputs) {
    if (input.has_gradient) bytes += BytesOf(input);
  }
  return bytes;
}

}  // namespace ckplan::cuda
