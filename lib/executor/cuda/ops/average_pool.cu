// AveragePool and GlobalAveragePool.
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/ops/pool.h"
#include "lib/executor/cuda/reduce.h"

namespace ckplan::cuda {

namespace {

// The number of elements over which each mean is taken: the product of one number per axis.
struct Counts {
  const float *z, *y, *x;
  CKPLAN_DEVICE float At(int64_t oz, int64_t oy, int64_t ox) const { return z[oz] * y[oy] * x[ox]; }
};

class AveragePoolOp final : public PreparedOp {
 public:
  // `counts` has the factors of Counts for all output positions of each axis, axis after axis.
  AveragePoolOp(const OpSpec& spec, Device& device, const PoolShape& shape,
                DeviceTable<float> counts)
      : device_(device),
        shape_(shape),
        index_(shape),
        table_(std::move(counts)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const Counts counts = TableOfCounts();
    const PoolIndex index = index_;
    if (y.is_null()) return;
    ForEach(device_, shape_.planes * shape_.out(), [=] CKPLAN_KERNEL(int64_t o) {
      const PoolPlace place = index.FindOutput(o);
      float sum = 0;
      index.ForInputs(place, [&](int64_t i) { sum += x[index.InputAt(place, i)]; });
      y.Set(o, sum / counts.At(place.z, place.y, place.x));
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const Counts counts = TableOfCounts();
    const PoolIndex index = index_;
    ForEach(device_, shape_.planes * shape_.in(), [=] CKPLAN_KERNEL(int64_t i) {
      const PoolPlace place = index.FindInput(i);
      float sum = 0;
      index.ForOutputs(place, [&](int64_t z, int64_t y, int64_t x) {
        sum += dy[index.OutputAt(place, z, y, x)] / counts.At(z, y, x);
      });
      dx.Set(i, sum);
    });
  }

 private:
  Counts TableOfCounts() const {
    const float* z = table_.data();
    const float* y = z + shape_.axes[0].out;
    return {z, y, y + shape_.axes[1].out};
  }

  Device& device_;
  PoolShape shape_;
  PoolIndex index_;
  DeviceTable<float> table_;
  ElementType x_type_, y_type_;
};

// A pool whose window is the whole plane.
class PlaneMeanOp final : public PreparedOp {
 public:
  PlaneMeanOp(const OpSpec& spec, Device& device, const PoolShape& shape, int64_t count)
      : device_(device),
        planes_(shape.planes),
        size_(shape.in()),
        lanes_(std::max<int64_t>(1, shape.interleaved)),
        sums_(ReduceShape::Of(planes_, size_, /*is_columns=*/true)),
        count_(static_cast<float>(count)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const int64_t size = size_;
    const float count = count_;
    if (y.is_null()) return;
    if (lanes_.divisor() > 1) return SumColumns(x, y, call.workspace);
    ForRows(device_, planes_, size, [=] CKPLAN_KERNEL(const Team& team, int64_t plane) {
      const float sum = team.Sum(size, [&](int64_t i) { return x[plane * size + i]; });
      if (team.IsFirst()) y.Set(plane, sum / count);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const Divider by_plane(std::max<int64_t>(1, size_)), lanes = lanes_;
    const float share = 1 / count_;
    ForEach(device_, planes_ * size_, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t lane = i;
      const int64_t first = by_plane.Quotient(lanes.Split(lane)) * lanes.divisor();
      dx.Set(i, dy[first + lane] * share);
    });
  }

  OpWorkspace workspace() const override {
    return {lanes_.divisor() > 1 ? sums_.workspace<float>() : 0, 0};
  }

  // Sums planes that lie interleaved. Public, because nvcc does not allow kernels in private
  // methods.
  void SumColumns(FloatsIn x, FloatsOut y, void* workspace) {
    const Divider lanes = lanes_;
    const int64_t size = size_;
    const float count = count_;
    Reduce(
        device_, sums_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t plane, int64_t i) {
          int64_t lane = plane;
          const int64_t sample = lanes.Split(lane);
          return x[(sample * size + i) * lanes.divisor() + lane];
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t plane, float sum) { y.Set(plane, sum / count); },
        workspace);
  }

 private:
  Device& device_;
  int64_t planes_, size_;
  Divider lanes_;     // Counts planes that lie interleaved.
  ReduceShape sums_;  // Adds up such planes.
  float count_;       // Elements per mean, padding included.
  ElementType x_type_, y_type_;
};

}  // namespace

Result<std::unique_ptr<PreparedOp>> PrepareAveragePool(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const PoolShape shape, ReadPoolShape(spec));
  if (shape.is_one_window()) {
    int64_t count = 1;
    for (const WindowAxis& axis : shape.axes) count *= axis.count(0, shape.counts_padding);
    return Prepared<PlaneMeanOp>(spec, device, shape, count);
  }
  std::vector<float> counts;
  for (const WindowAxis& axis : shape.axes) {
    for (int64_t o = 0; o < axis.out; ++o) {
      counts.push_back(static_cast<float>(axis.count(o, shape.counts_padding)));
    }
  }
  CKPLAN_ASSIGN_OR_RETURN(auto table, DeviceTable<float>::Create(device, counts));
  return Prepared<AveragePoolOp>(spec, device, shape, std::move(table));
}

}  // namespace ckplan::cuda
