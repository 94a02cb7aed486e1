// The Add of a mask to scores, and their softmax.
#include "lib/executor/cuda/fused.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/ops/held_softmax.h"

namespace ckplan::cuda {

namespace {

// The sum as the Add stores it; it is stored only if something else reads it.
struct MaskedRows {
  FloatsIn scores, mask;
  FloatsOut sums;
  bool rounds;  // The sum is a bfloat16.
  int64_t size;
  DeviceLayout<1> mask_rows;  // The offset of a row in the mask.

  CKPLAN_DEVICE Float4 Load(int64_t row, int g) const {
    const int64_t group = row * (size / kVector) + g;
    Float4 values = scores.Load(group);
    const Float4 terms = mask.Load(mask_rows.FindOne(0, row) / kVector + g);
    CKPLAN_UNROLL
    for (int lane = 0; lane < kVector; ++lane) {
      values.at[lane] += terms.at[lane];
      if (rounds) values.at[lane] = FromBFloat16(ToBFloat16(values.at[lane]));
    }
    if (!sums.is_null()) sums.Store(group, values);
    return values;
  }
};

// The offsets of the mask's rows: the layout of all axes but the last.
Layout MaskRows(const Dims& scores, const Dims& mask) {
  const Dims rows(scores.begin(), scores.end() - 1);
  const Dims mask_rows(mask.begin(), mask.end() - 1);
  Dims strides = BroadcastStrides(mask_rows, rows);
  for (int64_t& stride : strides) stride *= mask.back();
  if (rows.empty()) return {{1}, {{0}}};
  return Collapse(rows, {strides});
}

class FusedScores final : public FusedForward {
 public:
  FusedScores(const OpSpec& add, const OpSpec& softmax, Device& device)
      : device_(device),
        first_(FirstInput(add)),
        size_(add.output(0).dims.back()),
        rows_(add.output(0).elements() / size_),
        scores_type_(add.input(first_).type),
        mask_type_(add.input(1 - first_).type),
        sum_type_(add.output(0).type),
        y_type_(softmax.output(0).type),
        mask_rows_(MaskRows(add.output(0).dims, add.input(1 - first_).dims)) {}

  void Run(std::span<const ForwardCall> calls) override {
    const ForwardCall& add = calls[0];
    const MaskedRows rows{FloatsIn(add.inputs[first_], scores_type_),
                          FloatsIn(add.inputs[1 - first_], mask_type_),
                          FloatsOut(add.outputs[0], sum_type_),
                          sum_type_ == ElementType::kBFloat16,
                          size_,
                          mask_rows_};
    const FloatsOut y(calls[1].outputs[0], y_type_);
    if (FitsFewGroups(size_)) {
      ForRowsByWarps(device_, rows_, HeldSoftmax<false, kFewGroups, MaskedRows>{size_, rows, y});
    } else {
      ForRowsByWarps(device_, rows_, HeldSoftmax<false, kManyGroups, MaskedRows>{size_, rows, y});
    }
  }

 private:
  Device& device_;
  size_t first_;
  int64_t size_, rows_;
  ElementType scores_type_, mask_type_, sum_type_, y_type_;
  DeviceLayout<1> mask_rows_;
};

}  // namespace

std::unique_ptr<FusedForward> MakeFusedScores(std::span<const ChainedOp> ops, Device& device) {
  return std::make_unique<FusedScores>(*ops[0].spec, *ops[1].spec, device);
}

}  // namespace ckplan::cuda
