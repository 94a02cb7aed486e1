// LayerNormalization and RMSNormalization: rows normalised by their own moments.
#include "lib/cuda/families.h"
#include "lib/cuda/ops/moments.h"
#include "lib/cuda/reduce.h"
#include "lib/ops/layer_norm.h"

namespace ckplan::cuda {

namespace {

// The statistic: mean and inverse deviation of each row, or only the inverse deviation.
template <bool kHasMean>
struct SavedMoments {
  const float* data;
  CKPLAN_DEVICE Moments operator[](int64_t row) const {
    return kHasMean ? Moments{data[2 * row], data[2 * row + 1]} : Moments{0, data[row]};
  }
};

template <bool kHasMean>
class RowNormOp final : public PreparedOp {
 public:
  RowNormOp(const OpSpec& spec, Device& device, const LayerNormShape& shape)
      : device_(device),
        rows_(shape.rows),
        size_(shape.size),
        epsilon_(shape.epsilon),
        columns_(ReduceShape::Of(shape.size, shape.rows, true)),
        x_type_(spec.input(0).type),
        scale_type_(spec.input(1).type),
        bias_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        mean_type_(spec.output(1).type),
        inverse_type_(spec.output(2).type) {
    for (size_t i = 1; i < spec.inputs.size(); ++i) {
      if (spec.inputs[i].has_gradient) workspace_ = columns_.workspace<float>();
    }
  }

  OpWorkspace workspace() const override { return {0, workspace_}; }

  void Forward(const ForwardCall& call) override {
    const auto output = [&](size_t i) {
      return i < call.outputs.size() ? call.outputs[i] : nullptr;
    };
    const FloatsIn x(call.inputs[0], x_type_), scale(call.inputs[1], scale_type_);
    const FloatsIn bias(call.inputs.size() > 2 ? call.inputs[2] : nullptr, bias_type_);
    const FloatsOut y(output(0), y_type_), means(output(1), mean_type_);
    const FloatsOut inverses(output(2), inverse_type_);
    auto* saved = static_cast<float*>(call.statistic);
    const int64_t size = size_;
    const float epsilon = epsilon_;
    ForRows(device_, rows_, size, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
      const int64_t first = row * size;
      const Moments moments =
          MomentsOf(team, size, epsilon, kHasMean, [&](int64_t i) { return x[first + i]; });
      if (team.IsFirst()) {
        if (saved != nullptr && kHasMean) saved[2 * row] = moments.mean;
        if (saved != nullptr) saved[kHasMean ? 2 * row + 1 : row] = moments.inverse;
        if (!means.is_null()) means.Set(row, moments.mean);
        if (!inverses.is_null()) inverses.Set(row, moments.inverse);
      }
      if (y.is_null()) return;
      team.ForEach(size, [&](int64_t i) {
        const float value = (x[first + i] - moments.mean) * moments.inverse * scale[i];
        y.Set(first + i, bias.is_null() ? value : value + bias[i]);
      });
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const SavedMoments<kHasMean> saved{static_cast<const float*>(call.statistic)};
    if (position == 0) {
      PassRows(x, dy, FloatsIn(call.inputs[1], scale_type_), saved, FloatsOut(gradient, x_type_));
    } else if (position == 1) {
      SumScales(x, dy, saved, FloatsOut(gradient, scale_type_), call.workspace);
    } else {
      SumBiases(dy, FloatsOut(gradient, bias_type_), call.workspace);
    }
  }

  // Public, because nvcc does not allow kernels in private methods.
  void PassRows(FloatsIn x, FloatsIn dy, FloatsIn scale, SavedMoments<kHasMean> saved,
                FloatsOut dx) {
    const int64_t size = size_;
    ForRows(device_, rows_, size, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
      const int64_t first = row * size;
      PassRow(
          team, size, saved[row], kHasMean, [&](int64_t i) { return x[first + i]; },
          [&](int64_t i) { return dy[first + i] * scale[i]; },
          [&](int64_t i, float value) { dx.Set(first + i, value); });
    });
  }

  void SumScales(FloatsIn x, FloatsIn dy, SavedMoments<kHasMean> saved, FloatsOut dscale,
                 void* workspace) {
    const int64_t size = size_;
    Reduce(
        device_, columns_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t i, int64_t row) {
          const Moments moments = saved[row];
          return dy[row * size + i] * (x[row * size + i] - moments.mean) * moments.inverse;
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t i, float sum) { dscale.Set(i, sum); }, workspace);
  }

  void SumBiases(FloatsIn dy, FloatsOut dbias, void* workspace) {
    const int64_t size = size_;
    Reduce(
        device_, columns_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t i, int64_t row) { return dy[row * size + i]; }, SumOf(),
        [=] CKPLAN_KERNEL(int64_t i, float sum) { dbias.Set(i, sum); }, workspace);
  }

 private:
  Device& device_;
  int64_t rows_, size_;
  float epsilon_;
  ReduceShape columns_;
  int64_t workspace_ = 0;
  ElementType x_type_, scale_type_, bias_type_, y_type_, mean_type_, inverse_type_;
};

template <bool kHasMean>
Result<std::unique_ptr<PreparedOp>> PrepareLayerNorm(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const LayerNormShape shape, ReadLayerNormShape(spec));
  return Prepared<RowNormOp<kHasMean>>(spec, device, shape);
}

constexpr OpRow kLayerNormOps[] = {
    {"LayerNormalization", PrepareLayerNorm<true>},
    {"RMSNormalization", PrepareLayerNorm<false>},
};

}  // namespace

std::span<const OpRow> LayerNormOps() { return kLayerNormOps; }

}  // namespace ckplan::cuda
