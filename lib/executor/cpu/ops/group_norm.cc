// GroupNormalization, and InstanceNormalization, whose groups are the channels: each group of
// channels of each sample is normalised by its own moments.
#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/ops/moments.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cpu {

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
      ForGroups([&](int64_t group) { PassGroup(call, group, Floats(gradient)); });
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

  // Returns the index of the scale and bias for a channel of a group. `group` counts the groups of
  // all samples.
  int64_t ParameterOf(int64_t group, int64_t channel) const {
    return (group % shape_.groups * shape_.group_channels + channel) / shape_.scale_channels;
  }

  static Moments SavedMoments(const BackwardCall& call, int64_t group) {
    const float* saved = Floats(call.statistic);
    return {saved[2 * group], saved[2 * group + 1]};
  }

  void PassGroup(const BackwardCall& call, int64_t group, float* dx) const {
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
      PassGradients(x, moments, sums, shape_.group_size(), shape_.positions, g, dx + at);
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

}  // namespace ckplan::cpu
