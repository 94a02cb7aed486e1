// MeanVarianceNormalization: without scale and bias, its moments not saved but made again.
#include "lib/cuda/channels.h"
#include "lib/cuda/families.h"
#include "lib/cuda/moments.h"

namespace ckplan::cuda {

namespace {

// Of the deviation, not of the variance, as ONNX has it.
constexpr float kEpsilon = 1e-9F;

template <typename X>
CKPLAN_KERNEL Moments MomentsOfChannel(const Team& team, int64_t count, const X& x) {
  const auto size = static_cast<float>(count);
  const float mean = team.Sum(count, x) / size;
  const float squares = team.Sum(count, [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
  return {mean, 1 / (sqrtf(squares / size) + kEpsilon)};
}

// Each channel is normalised by itself.
class MeanVarianceNormOp final : public PreparedOp {
 public:
  MeanVarianceNormOp(const OpSpec& spec, Device& device, const Channels& shape)
      : device_(device), shape_(shape), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const ChannelIndex index(shape_);
    const int64_t size = shape_.channel_size();
    ForRows(device_, shape_.channels, size, [=] CKPLAN_KERNEL(const Team& team, int64_t c) {
      const Moments moments =
          MomentsOfChannel(team, size, [&](int64_t i) { return x[index.At(c, i)]; });
      team.ForEach(size, [&](int64_t i) {
        const int64_t at = index.At(c, i);
        y.Set(at, (x[at] - moments.mean) * moments.inverse);
      });
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const ChannelIndex index(shape_);
    const int64_t size = shape_.channel_size();
    ForRows(device_, shape_.channels, size, [=] CKPLAN_KERNEL(const Team& team, int64_t c) {
      const auto element = [&](int64_t i) { return x[index.At(c, i)]; };
      const Moments moments = MomentsOfChannel(team, size, element);
      PassRow(
          team, size, moments, true, element, [&](int64_t i) { return dy[index.At(c, i)]; },
          [&](int64_t i, float value) { dx.Set(index.At(c, i), value); });
    });
  }

 private:
  Device& device_;
  Channels shape_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec, Device& device) {
  const std::vector<int64_t>& dims = spec.input(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<bool> is_reduced(dims.size(), false);
  const std::vector<int64_t> axes =
      spec.Has("axes") ? spec.Ints("axes") : std::vector<int64_t>{0, 2, 3};
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return Unsupported(spec, "it has no such axis");
    is_reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  Channels shape;
  size_t i = 0;
  for (; i < dims.size() && is_reduced[i]; ++i) shape.samples *= dims[i];
  for (; i < dims.size() && !is_reduced[i]; ++i) shape.channels *= dims[i];
  for (; i < dims.size() && is_reduced[i]; ++i) shape.positions *= dims[i];
  if (i < dims.size()) return Unsupported(spec, "the axes that it keeps are no neighbours");
  if (spec.input(0).elements() == 0) return Unsupported(spec, "its input is empty");
  return Prepared<MeanVarianceNormOp>(spec, device, shape);
}

constexpr OpRow kRows[] = {{"MeanVarianceNormalization", Prepare, true, "kept axes in one piece"}};

}  // namespace

std::span<const OpRow> MeanVarianceNormOps() { return kRows; }

}  // namespace ckplan::cuda
