// LayerNormalization and RMSNormalization: rows normalised by their own moments.
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/lines.h"
#include "lib/executor/cuda/ops/moments.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cuda {

namespace {

// The statistic: each row's mean and inverse deviation, or only the inverse deviation.
template <bool kHasMean>
struct SavedMoments {
  const float* data;
  CKPLAN_DEVICE Moments operator[](int64_t row) const {
    return kHasMean ? Moments{data[2 * row], data[2 * row + 1]} : Moments{0, data[row]};
  }
};

// What forward writes for a row besides its elements. Each may be null.
template <bool kHasMean>
struct RowMoments {
  float* saved;
  FloatsOut means, inverses;
  CKPLAN_DEVICE void Store(int64_t row, const Moments& moments) const {
    if (saved != nullptr && kHasMean) saved[2 * row] = moments.mean;
    if (saved != nullptr) saved[kHasMean ? 2 * row + 1 : row] = moments.inverse;
    if (!means.is_null()) means.Set(row, moments.mean);
    if (!inverses.is_null()) inverses.Set(row, moments.inverse);
  }
};

// Normalises a row in a warp's registers.
template <bool kHasMean, int kGroups>
struct NormaliseHeld {
  int64_t size;
  float epsilon;
  FloatsIn x, scale, bias;
  FloatsOut y;
  RowMoments<kHasMean> results;

  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const RegisterGroups<kGroups> groups(team, size);
    const int64_t first = row * (size / kVector);
    RegisterRow<kGroups> held = groups.Hold([&](int g) { return x.Load(first + g); });
    const Moments moments = MomentsOfHeld(groups, held);
    if (team.IsFirst()) results.Store(row, moments);
    if (y.is_null()) return;
    groups.ForEach([&](int k, int g) {
      const Float4 factors = scale.Load(g);
      Float4 terms{};
      if (!bias.is_null()) terms = bias.Load(g);
      CKPLAN_UNROLL
      for (int lane = 0; lane < kVector; ++lane) {
        float& value = held.at[k].at[lane];
        value = (value - moments.mean) * moments.inverse * factors.at[lane];
        if (!bias.is_null()) value += terms.at[lane];
      }
      y.Store(first + g, held.at[k]);
    });
  }

  CKPLAN_KERNEL Moments MomentsOfHeld(const RegisterGroups<kGroups>& groups,
                                      const RegisterRow<kGroups>& held) const {
    const auto count = static_cast<float>(size);
    const auto element = [&](int k, int lane) { return held.at[k].at[lane]; };
    const float mean = kHasMean ? groups.Sum(element) / count : 0.0F;
    const float squares = groups.Sum([&](int k, int lane) {
      const float distance = held.at[k].at[lane] - mean;
      return distance * distance;
    });
    return {mean, 1 / sqrtf(squares / count + epsilon)};
  }
};

template <bool kHasMean, int kGroups>
struct PassHeld {
  int64_t size;
  FloatsIn x, dy, scale;
  SavedMoments<kHasMean> saved;
  FloatsOut dx;

  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const RegisterGroups<kGroups> groups(team, size);
    const int64_t first = row * (size / kVector);
    const Moments moments = saved[row];
    const RegisterRow<kGroups> held = groups.Hold([&](int g) { return x.Load(first + g); });
    RegisterRow<kGroups> gradients = groups.Hold([&](int g) {
      Float4 values = dy.Load(first + g);
      const Float4 factors = scale.Load(g);
      CKPLAN_UNROLL
      for (int lane = 0; lane < kVector; ++lane) values.at[lane] *= factors.at[lane];
      return values;
    });
    GradientSums sums = groups.Reduce(
        GradientSums{0, 0},
        [&](int k, int lane) {
          const float g = gradients.at[k].at[lane];
          return GradientSums{g, g * (held.at[k].at[lane] - moments.mean)};
        },
        MergeGradientSums());
    if (!kHasMean) sums.gradient = 0;
    const auto count = static_cast<float>(size);
    groups.ForEach([&](int k, int g) {
      CKPLAN_UNROLL
      for (int lane = 0; lane < kVector; ++lane) {
        float& value = gradients.at[k].at[lane];
        value = PassGradient(held.at[k].at[lane], value, moments, sums, count);
      }
      dx.Store(first + g, gradients.at[k]);
    });
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
        needs_both_(spec.input(1).has_gradient && spec.input(2).has_gradient),
        x_type_(spec.input(0).type),
        scale_type_(spec.input(1).type),
        bias_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        mean_type_(spec.output(1).type),
        inverse_type_(spec.output(2).type) {
    for (size_t i = 1; i < spec.inputs.size(); ++i) {
      if (spec.inputs[i].has_gradient) workspace_ = columns_.workspace<float>();
    }
    if (needs_both_) {
      WorkspacePlan plan;
      plan.AddFloats(size_);
      parts_ = plan.Add(columns_.workspace<GradientSums>());
      workspace_ = plan.total();
    }
  }

  OpWorkspace workspace() const override { return {0, workspace_}; }

  void Forward(const ForwardCall& call) override {
    const auto output = [&](size_t i) {
      return i < call.outputs.size() ? call.outputs[i] : nullptr;
    };
    const FloatsIn x(call.inputs[0], x_type_), scale(call.inputs[1], scale_type_);
    const FloatsIn bias(call.inputs.size() > 2 ? call.inputs[2] : nullptr, bias_type_);
    const FloatsOut y(output(0), y_type_);
    const RowMoments<kHasMean> results{static_cast<float*>(call.statistic),
                                       FloatsOut(output(1), mean_type_),
                                       FloatsOut(output(2), inverse_type_)};
    if (!CanHoldRow(size_)) {
      Normalise(x, scale, bias, y, results);
    } else if (FitsFewGroups(size_)) {
      ForRowsByWarps(
          device_, rows_,
          NormaliseHeld<kHasMean, kFewGroups>{size_, epsilon_, x, scale, bias, y, results});
    } else {
      ForRowsByWarps(
          device_, rows_,
          NormaliseHeld<kHasMean, kManyGroups>{size_, epsilon_, x, scale, bias, y, results});
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const SavedMoments<kHasMean> saved{static_cast<const float*>(call.statistic)};
    if (position == 0) {
      PassRows(x, dy, FloatsIn(call.inputs[1], scale_type_), saved, FloatsOut(gradient, x_type_));
    } else if (position == 1) {
      SumScales(x, dy, saved, FloatsOut(gradient, scale_type_), call.workspace);
    } else if (needs_both_) {
      TakeBiases(call.workspace, FloatsOut(gradient, bias_type_));
    } else {
      SumBiases(dy, FloatsOut(gradient, bias_type_), call.workspace);
    }
  }

  // Public, because nvcc does not allow kernels in private methods.
  void Normalise(FloatsIn x, FloatsIn scale, FloatsIn bias, FloatsOut y,
                 const RowMoments<kHasMean>& results) {
    const int64_t size = size_;
    const float epsilon = epsilon_;
    ForRows(device_, rows_, size, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
      const int64_t first = row * size;
      const Moments moments =
          MomentsOf(team, size, epsilon, kHasMean, [&](int64_t i) { return x[first + i]; });
      if (team.IsFirst()) results.Store(row, moments);
      if (y.is_null()) return;
      team.ForEach(size, [&](int64_t i) {
        const float value = (x[first + i] - moments.mean) * moments.inverse * scale[i];
        y.Set(first + i, bias.is_null() ? value : value + bias[i]);
      });
    });
  }

  void PassRows(FloatsIn x, FloatsIn dy, FloatsIn scale, SavedMoments<kHasMean> saved,
                FloatsOut dx) {
    const int64_t size = size_;
    if (CanHoldRow(size)) return PassHeldRows(x, dy, scale, saved, dx);
    ForRows(device_, rows_, size, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
      const int64_t first = row * size;
      PassRow(
          team, size, saved[row], kHasMean, [&](int64_t i) { return x[first + i]; },
          [&](int64_t i) { return dy[first + i] * scale[i]; },
          [&](int64_t i, float value) { dx.Set(first + i, value); });
    });
  }

  void PassHeldRows(FloatsIn x, FloatsIn dy, FloatsIn scale, SavedMoments<kHasMean> saved,
                    FloatsOut dx) {
    if (FitsFewGroups(size_)) {
      ForRowsByWarps(device_, rows_,
                     PassHeld<kHasMean, kFewGroups>{size_, x, dy, scale, saved, dx});
    } else {
      ForRowsByWarps(device_, rows_,
                     PassHeld<kHasMean, kManyGroups>{size_, x, dy, scale, saved, dx});
    }
  }

  // If needed, also sums the bias gradients and leaves them in the workspace.
  void SumScales(FloatsIn x, FloatsIn dy, SavedMoments<kHasMean> saved, FloatsOut dscale,
                 void* workspace) {
    const int64_t size = size_;
    if (needs_both_) {
      auto* const biases = static_cast<float*>(workspace);
      Reduce(
          device_, columns_, GradientSums{0, 0},
          [=] CKPLAN_KERNEL(int64_t i, int64_t row) {
            const Moments moments = saved[row];
            const float g = dy[row * size + i];
            return GradientSums{g, g * (x[row * size + i] - moments.mean) * moments.inverse};
          },
          MergeGradientSums(),
          [=] CKPLAN_KERNEL(int64_t i, const GradientSums& all) {
            dscale.Set(i, all.product);
            biases[i] = all.gradient;
          },
          BufferAt(workspace, parts_));
      return;
    }
    Reduce(
        device_, columns_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t i, int64_t row) {
          const Moments moments = saved[row];
          return dy[row * size + i] * (x[row * size + i] - moments.mean) * moments.inverse;
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t i, float sum) { dscale.Set(i, sum); }, workspace);
  }

  void TakeBiases(const void* workspace, FloatsOut dbias) {
    const auto* const biases = static_cast<const float*>(workspace);
    ForEach(device_, size_, [=] CKPLAN_KERNEL(int64_t i) { dbias.Set(i, biases[i]); });
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
  bool needs_both_;  // Both gradients, of scales and biases, which are summed together.
  int64_t workspace_ = 0;
  int64_t parts_ = 0;  // Offset of the partial sums; the bias gradients come first.
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
