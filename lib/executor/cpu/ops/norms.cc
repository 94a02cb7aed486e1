// BatchNormalization, always with the batch's statistics: a training step runs even if the model
// was exported for inference. The running statistics are not part of the step; outputs 1 and 2, if
// used, receive the batch's statistics.
#include "lib/problem/ops/norms.h"

#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

// Mean and deviation of a range of floats, and the gradient of a normalisation by them:
//
//   y = scale (x - mean) / deviation + bias,  x̂ = (x - mean) / deviation
//   dx = (g - mean(g) - x̂ mean(g x̂)) / deviation,  g = scale dy
struct Moments {
  float mean = 0, inverse_deviation = 0;
};

Moments MomentsOf(const float* x, int64_t count, float epsilon) {
  Moments moments;
  const auto size = static_cast<double>(count);
  const auto mean = static_cast<float>(Sum(x, count) / size);
  const double squares =
      SumTerms(count, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  moments.mean = mean;
  moments.inverse_deviation = 1 / std::sqrt(static_cast<float>(squares / size) + epsilon);
  return moments;
}

// Sums that the gradients of a normalised range share.
struct GradientSums {
  double gradient = 0;  // Sum of g.
  double product = 0;   // Sum of g x̂.
};

// g(i) is the gradient of x̂ at i.
template <typename Gradient>
GradientSums SumGradients(const float* x, Moments moments, int64_t count, const Gradient& g) {
  const double sum = SumTerms(count, g);
  const double product =
      SumTerms(count, [x, moments, &g](int64_t i) { return g(i) * (x[i] - moments.mean); });
  return {sum, product * static_cast<double>(moments.inverse_deviation)};
}

// `size` elements were normalised together; this call handles `count` of them.
template <typename Gradient>
void ComputeInputGradients(const float* x, Moments moments, GradientSums sums, int64_t size,
                           int64_t count, const Gradient& g, float* dx) {
  const float inverse = moments.inverse_deviation;
  const auto mean = static_cast<float>(sums.gradient / static_cast<double>(size));
  const float slope = static_cast<float>(sums.product / static_cast<double>(size)) * inverse;
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = inverse * (g(i) - mean - slope * (x[i] - moments.mean));
  }
}

class BatchNormOp final : public PreparedOp {
 public:
  explicit BatchNormOp(const BatchNormShape& shape)
      : shape_(shape.view), epsilon_(shape.epsilon), first_gradient_(shape.first_gradient) {
    sums_ = plan_.Add(shape_.channels * 2 * static_cast<int64_t>(sizeof(float)));
  }

  OpWorkspace workspace() const override { return {0, plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    ParallelFor(shape_.channels, Grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) ForwardChannel(call, x, c);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    auto* result = static_cast<float*>(gradient);
    const float* dy = Floats(call.output_gradients[0]);
    const float* x = Floats(call.inputs[0]);
    const auto* moments = static_cast<const float*>(call.statistic);
    float* sums = FloatsAt(call.workspace, sums_);
    ParallelFor(shape_.channels, Grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const Moments channel = {moments[2 * c], moments[2 * c + 1]};
        if (position == first_gradient_) SumChannel(x, dy, channel, c, sums + 2 * c);
        if (position == 1) result[c] = sums[2 * c + 1];
        if (position == 2) result[c] = sums[2 * c];
        if (position != 0) continue;
        BackwardChannel(x, dy, channel, Floats(call.inputs[1])[c], sums + 2 * c, c, result);
      }
    });
  }

 private:
  // Returns how many channels are worth a thread.
  int64_t Grain() const { return std::max<int64_t>(1, kGrain / shape_.channel_size()); }

  double SumSamples(const float* x, int64_t channel) const {
    double sum = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      sum += Sum(x + shape_.offset(n, channel), shape_.positions);
    }
    return sum;
  }

  double SumSquares(const float* x, float mean, int64_t channel) const {
    double sum = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* at = x + shape_.offset(n, channel);
      sum += SumTerms(shape_.positions,
                      [at, mean](int64_t i) { return (at[i] - mean) * (at[i] - mean); });
    }
    return sum;
  }

  void ForwardChannel(const ForwardCall& call, const float* x, int64_t c) const {
    const auto count = static_cast<double>(shape_.channel_size());
    const auto mean = static_cast<float>(SumSamples(x, c) / count);
    const auto variance = static_cast<float>(SumSquares(x, mean, c) / count);
    const float inverse = 1 / std::sqrt(variance + epsilon_);
    if (call.statistic != nullptr) {
      auto* moments = static_cast<float*>(call.statistic);
      moments[2 * c] = mean;
      moments[2 * c + 1] = inverse;
    }
    if (call.outputs.size() > 1 && call.outputs[1] != nullptr) {
      static_cast<float*>(call.outputs[1])[c] = mean;
    }
    if (call.outputs.size() > 2 && call.outputs[2] != nullptr) {
      static_cast<float*>(call.outputs[2])[c] = variance;
    }
    if (call.outputs[0] == nullptr) return;
    const float factor = Floats(call.inputs[1])[c] * inverse;
    const float bias = Floats(call.inputs[2])[c];
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* from = x + shape_.offset(n, c);
      float* to = static_cast<float*>(call.outputs[0]) + shape_.offset(n, c);
      for (int64_t i = 0; i < shape_.positions; ++i) to[i] = (from[i] - mean) * factor + bias;
    }
  }

  // Computes sums[0] = sum of dy, the gradient of the bias, and sums[1] = sum of dy times the
  // normalised x, the gradient of the scale.
  void SumChannel(const float* x, const float* dy, Moments moments, int64_t c, float* sums) const {
    double sum = 0;
    double weighted = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* at = x + shape_.offset(n, c);
      const float* gradient = dy + shape_.offset(n, c);
      sum += Sum(gradient, shape_.positions);
      weighted += SumTerms(shape_.positions, [at, gradient, moments](int64_t i) {
        return gradient[i] * (at[i] - moments.mean);
      });
    }
    sums[0] = static_cast<float>(sum);
    sums[1] = static_cast<float>(weighted * static_cast<double>(moments.inverse_deviation));
  }

  // Computes dx = scale / deviation * (dy - mean(dy) - x̂ mean(dy x̂)), where x̂ is the normalised
  // x.
  void BackwardChannel(const float* x, const float* dy, Moments moments, float scale,
                       const float* sums, int64_t c, float* dx) const {
    const auto count = static_cast<float>(shape_.channel_size());
    const float factor = scale * moments.inverse_deviation;
    const float mean_gradient = sums[0] / count;
    const float slope = sums[1] / count * moments.inverse_deviation;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const int64_t offset = shape_.offset(n, c);
      const float* at = x + offset;
      const float* gradient = dy + offset;
      float* to = dx + offset;
      for (int64_t i = 0; i < shape_.positions; ++i) {
        to[i] = factor * (gradient[i] - mean_gradient - slope * (at[i] - moments.mean));
      }
    }
  }

  ChannelView shape_;
  float epsilon_;
  size_t first_gradient_;  // The first input with a gradient; its call computes the sums.
  WorkspacePlan plan_;
  int64_t sums_ = 0;  // Offset in the workspace: two floats per channel.
};

Result<std::unique_ptr<PreparedOp>> PrepareBatchNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const BatchNormShape shape, ReadBatchNormShape(spec));
  return Prepared<BatchNormOp>(shape);
}

constexpr OpRow kBatchNormOps[] = {{"BatchNormalization", PrepareBatchNorm}};

}  // namespace

std::span<const OpRow> BatchNormOps() { return kBatchNormOps; }

// GroupNormalization, and InstanceNormalization, whose groups are single channels. Each group of
// channels of a sample is normalised by its own moments.

namespace {

class GroupNormOp final : public PreparedOp {
 public:
  explicit GroupNormOp(const GroupNormShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    ForGroups([&](int64_t group) {
      const int64_t size = shape_.group_size();
      const float* x = Floats(call.inputs[0]) + group * size;
      const Moments moments = MomentsOf(x, size, shape_.epsilon);
      if (call.statistic != nullptr) {
        Floats(call.statistic)[2 * group] = moments.mean;
        Floats(call.statistic)[2 * group + 1] = moments.inverse_deviation;
      }
      if (call.outputs[0] == nullptr) return;
      float* y = Floats(call.outputs[0]) + group * size;
      for (int64_t c = 0; c < shape_.group_channels; ++c) {
        const int64_t parameter = ParameterOf(group, c);
        const float factor = Floats(call.inputs[1])[parameter] * moments.inverse_deviation;
        const float bias = Floats(call.inputs[2])[parameter];
        for (int64_t i = c * shape_.positions; i < (c + 1) * shape_.positions; ++i) {
          y[i] = (x[i] - moments.mean) * factor + bias;
        }
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == 0) {
      ForGroups([&](int64_t group) { BackwardGroup(call, group, Floats(gradient)); });
      return;
    }
    ParallelFor(shape_.parameters(),
                Grain(shape_.samples * shape_.scale_channels * shape_.positions),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    const GradientSums sums = SumParameter(call, p);
                    const double sum = position == 1 ? sums.product : sums.gradient;
                    Floats(gradient)[p] = static_cast<float>(sum);
                  }
                });
  }

 private:
  static int64_t Grain(int64_t size) { return std::max<int64_t>(1, kGrain / 4 / size); }

  template <typename Body>
  void ForGroups(const Body& body) const {
    ParallelFor(shape_.samples * shape_.groups, Grain(shape_.group_size()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t group = begin; group < end; ++group) body(group);
                });
  }

  // Returns the index of the scale and bias for a group's channel. `group` counts the groups of all
  // samples.
  int64_t ParameterOf(int64_t group, int64_t channel) const {
    return (group % shape_.groups * shape_.group_channels + channel) / shape_.scale_channels;
  }

  static Moments SavedMoments(const BackwardCall& call, int64_t group) {
    const float* saved = Floats(call.statistic);
    return {saved[2 * group], saved[2 * group + 1]};
  }

  void BackwardGroup(const BackwardCall& call, int64_t group, float* dx) const {
    const int64_t first = group * shape_.group_size();
    const Moments moments = SavedMoments(call, group);
    GradientSums sums;
    const auto for_channels = [&](const auto& body) {
      for (int64_t c = 0; c < shape_.group_channels; ++c) {
        const int64_t at = first + c * shape_.positions;
        const float scale = Floats(call.inputs[1])[ParameterOf(group, c)];
        const float* dy = Floats(call.output_gradients[0]) + at;
        body(
            Floats(call.inputs[0]) + at, [dy, scale](int64_t i) { return dy[i] * scale; }, at);
      }
    };
    for_channels([&](const float* x, const auto& g, int64_t) {
      const GradientSums own = SumGradients(x, moments, shape_.positions, g);
      sums.gradient += own.gradient;
      sums.product += own.product;
    });
    for_channels([&](const float* x, const auto& g, int64_t at) {
      ComputeInputGradients(x, moments, sums, shape_.group_size(), shape_.positions, g, dx + at);
    });
  }

  // Sums over all samples and over the channels that share this scale.
  GradientSums SumParameter(const BackwardCall& call, int64_t parameter) const {
    GradientSums sums;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      for (int64_t c = parameter * shape_.scale_channels;
           c < (parameter + 1) * shape_.scale_channels; ++c) {
        const int64_t at = (n * shape_.channels() + c) * shape_.positions;
        const float* dy = Floats(call.output_gradients[0]) + at;
        const Moments moments = SavedMoments(call, n * shape_.groups + c / shape_.group_channels);
        const GradientSums own = SumGradients(Floats(call.inputs[0]) + at, moments,
                                              shape_.positions, [dy](int64_t i) { return dy[i]; });
        sums.gradient += own.gradient;
        sums.product += own.product;
      }
    }
    return sums;
  }

  GroupNormShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareGroupNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const GroupNormShape shape, ReadGroupNormShape(spec));
  return Prepared<GroupNormOp>(shape);
}

constexpr OpRow kGroupNormOps[] = {{"GroupNormalization", PrepareGroupNorm},
                                   {"InstanceNormalization", PrepareGroupNorm}};

}  // namespace

std::span<const OpRow> GroupNormOps() { return kGroupNormOps; }

// LayerNormalization and RMSNormalization: rows normalised by their own moments.

namespace {

// Returns RMSNormalization's moments: the mean counts as 0, and the deviation is the root mean
// square.
Moments RootMeanSquareOf(const float* x, int64_t count, float epsilon) {
  const double squares = SumTerms(count, [x](int64_t i) { return x[i] * x[i]; });
  const auto mean = static_cast<float>(squares / static_cast<double>(count));
  return {0, 1 / std::sqrt(mean + epsilon)};
}

template <bool kHasMean>
class RowNormOp final : public PreparedOp {
 public:
  explicit RowNormOp(const LayerNormShape& shape)
      : rows_(shape.rows), size_(shape.size), epsilon_(shape.epsilon) {}

  void Forward(const ForwardCall& call) override {
    ForRows([&](int64_t row) {
      const float* x = Floats(call.inputs[0]) + row * size_;
      const Moments moments =
          kHasMean ? MomentsOf(x, size_, epsilon_) : RootMeanSquareOf(x, size_, epsilon_);
      Save(moments, row, Floats(call.statistic));
      for (size_t i = 1; i < call.outputs.size(); ++i) {
        if (call.outputs[i] == nullptr) continue;
        Floats(call.outputs[i])[row] = i == 1 ? moments.mean : moments.inverse_deviation;
      }
      if (call.outputs[0] == nullptr) return;
      const bool has_bias = call.inputs.size() > 2 && call.inputs[2] != nullptr;
      Normalise(x, moments, Floats(call.inputs[1]), has_bias ? Floats(call.inputs[2]) : nullptr,
                Floats(call.outputs[0]) + row * size_);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    const float* x = Floats(call.inputs[0]);
    const float* saved = Floats(call.statistic);
    float* result = Floats(gradient);
    if (position == 0) {
      const float* scale = Floats(call.inputs[1]);
      ForRows([&](int64_t row) {
        const int64_t at = row * size_;
        BackwardRow(x + at, dy + at, scale, Saved(saved, row), result + at);
      });
    } else if (position == 1) {
      SumColumns(rows_, size_, result, [&](int64_t row, int64_t i) {
        const Moments moments = Saved(saved, row);
        const int64_t at = row * size_ + i;
        return dy[at] * (x[at] - moments.mean) * moments.inverse_deviation;
      });
    } else {
      SumColumns(rows_, size_, result, [&](int64_t row, int64_t i) { return dy[row * size_ + i]; });
    }
  }

 private:
  template <typename Body>
  void ForRows(const Body& body) const {
    ParallelFor(rows_, std::max<int64_t>(1, kGrain / 4 / size_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }

  static void Save(Moments moments, int64_t row, float* statistic) {
    if (statistic == nullptr) return;
    if constexpr (kHasMean) statistic[2 * row] = moments.mean;
    statistic[kHasMean ? 2 * row + 1 : row] = moments.inverse_deviation;
  }
  static Moments Saved(const float* statistic, int64_t row) {
    if constexpr (!kHasMean) return {0, statistic[row]};
    return {statistic[2 * row], statistic[2 * row + 1]};
  }

  void Normalise(const float* x, Moments moments, const float* scale, const float* bias,
                 float* y) const {
    if (bias == nullptr) {
      for (int64_t i = 0; i < size_; ++i) {
        y[i] = (x[i] - moments.mean) * moments.inverse_deviation * scale[i];
      }
      return;
    }
    for (int64_t i = 0; i < size_; ++i) {
      y[i] = (x[i] - moments.mean) * moments.inverse_deviation * scale[i] + bias[i];
    }
  }

  void BackwardRow(const float* x, const float* dy, const float* scale, Moments moments,
                   float* dx) const {
    const auto g = [dy, scale](int64_t i) { return dy[i] * scale[i]; };
    GradientSums sums = SumGradients(x, moments, size_, g);
    if constexpr (!kHasMean) sums.gradient = 0;
    ComputeInputGradients(x, moments, sums, size_, size_, g, dx);
  }

  int64_t rows_, size_;
  float epsilon_;
};

template <bool kHasMean>
Result<std::unique_ptr<PreparedOp>> PrepareLayerNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const LayerNormShape shape, ReadLayerNormShape(spec));
  return Prepared<RowNormOp<kHasMean>>(shape);
}

constexpr OpRow kLayerNormOps[] = {
    {"LayerNormalization", PrepareLayerNorm<true>},
    {"RMSNormalization", PrepareLayerNorm<false>},
};

}  // namespace

std::span<const OpRow> LayerNormOps() { return kLayerNormOps; }

// MeanVarianceNormalization. It has no scale and bias, and backward recomputes the moments.

namespace {

constexpr double kEpsilon = 1e-9;  // Added to the deviation, as ONNX defines it.

class MeanVarianceNormOp final : public PreparedOp {
 public:
  explicit MeanVarianceNormOp(const MeanVarianceNormShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    ForChannels([&](int64_t c) {
      const Moments moments = MomentsOfChannel(Floats(call.inputs[0]), c);
      for (int64_t n = 0; n < shape_.samples; ++n) {
        const float* x = Floats(call.inputs[0]) + shape_.offset(n, c);
        float* y = Floats(call.outputs[0]) + shape_.offset(n, c);
        for (int64_t i = 0; i < shape_.positions; ++i) {
          y[i] = (x[i] - moments.mean) * moments.inverse_deviation;
        }
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    ForChannels([&](int64_t c) {
      const Moments moments = MomentsOfChannel(Floats(call.inputs[0]), c);
      const auto for_samples = [&](const auto& body) {
        for (int64_t n = 0; n < shape_.samples; ++n) {
          const int64_t at = shape_.offset(n, c);
          const float* dy = Floats(call.output_gradients[0]) + at;
          body(
              Floats(call.inputs[0]) + at, [dy](int64_t i) { return dy[i]; }, at);
        }
      };
      GradientSums sums;
      for_samples([&](const float* x, const auto& g, int64_t) {
        const GradientSums own = SumGradients(x, moments, shape_.positions, g);
        sums.gradient += own.gradient;
        sums.product += own.product;
      });
      for_samples([&](const float* x, const auto& g, int64_t at) {
        ComputeInputGradients(x, moments, sums, shape_.channel_size(), shape_.positions, g,
                              Floats(gradient) + at);
      });
    });
  }

 private:
  template <typename Body>
  void ForChannels(const Body& body) const {
    ParallelFor(shape_.channels, std::max<int64_t>(1, kGrain / 4 / shape_.channel_size()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t c = begin; c < end; ++c) body(c);
                });
  }

  Moments MomentsOfChannel(const float* x, int64_t channel) const {
    const auto count = static_cast<double>(shape_.channel_size());
    double sum = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      sum += Sum(x + shape_.offset(n, channel), shape_.positions);
    }
    Moments moments;
    moments.mean = static_cast<float>(sum / count);
    const float mean = moments.mean;
    double squares = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* at = x + shape_.offset(n, channel);
      squares += SumTerms(shape_.positions,
                          [at, mean](int64_t i) { return (at[i] - mean) * (at[i] - mean); });
    }
    moments.inverse_deviation = static_cast<float>(1 / (std::sqrt(squares / count) + kEpsilon));
    return moments;
  }

  MeanVarianceNormShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareMeanVarianceNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MeanVarianceNormShape shape, ReadMeanVarianceNormShape(spec));
  return Prepared<MeanVarianceNormOp>(shape);
}

constexpr OpRow kMeanVarianceNormOps[] = {{"MeanVarianceNormalization", PrepareMeanVarianceNorm}};

}  // namespace

std::span<const OpRow> MeanVarianceNormOps() { return kMeanVarianceNormOps; }

}  // namespace ckplan::cpu
