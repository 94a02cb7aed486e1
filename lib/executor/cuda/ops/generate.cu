// Tensors generated from shapes and a few integers, and Dropout.

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/integers.h"
#include "lib/executor/scalar/random.h"
#include "lib/problem/ops/generate.h"

namespace ckplan::cuda {

namespace {

class ShapeOp final : public PreparedOp {
 public:
  ShapeOp(Device& device, const Dims& dims, DeviceTable<int64_t> table)
      : device_(device),
        bytes_(static_cast<int64_t>(dims.size() * sizeof(int64_t))),
        table_(std::move(table)) {}
  void Forward(const ForwardCall& call) override {
    device_.Copy(call.outputs[0], table_.data(), bytes_);
  }

 private:
  Device& device_;
  int64_t bytes_;
  DeviceTable<int64_t> table_;
};

Result<std::unique_ptr<PreparedOp>> PrepareShape(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const Dims dims, ReadShapeOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(DeviceTable<int64_t> table, DeviceTable<int64_t>::Create(device, dims));
  return Prepared<ShapeOp>(device, dims, std::move(table));
}

// ---- Range --------------------------------------------------------------------------------------

template <typename T>
class RangeOp final : public PreparedOp {
 public:
  RangeOp(const OpSpec& spec, Device& device)
      : device_(device), count_(spec.output(0).elements()) {}
  void Forward(const ForwardCall& call) override {
    const auto* const start = static_cast<const T*>(call.inputs[0]);
    const auto* const step = static_cast<const T*>(call.inputs[2]);
    auto* const y = static_cast<T*>(call.outputs[0]);
    ForEach(device_, count_,
            [=] CKPLAN_KERNEL(int64_t i) { y[i] = scalar::RangeValue(*start, *step, i); });
  }

 private:
  Device& device_;
  int64_t count_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRange(const OpSpec& spec, Device& device) {
  if (IsFloat(spec.output(0).type)) return Unsupported(spec, "its kernel takes only integers");
  if (spec.output(0).type == ElementType::kInt32) return Prepared<RangeOp<int32_t>>(spec, device);
  return Prepared<RangeOp<int64_t>>(spec, device);
}

constexpr OpRow kGenerateOps[] = {
    {"Shape", PrepareShape},
    {"Size", PrepareShape},
    {"Range", PrepareRange, "floats run on the host"},
};

}  // namespace

std::span<const OpRow> GenerateOps() { return kGenerateOps; }

// Dropout. Each number is a function of the call's seed and the element's index, so backward draws
// the same numbers as forward, and all backends draw the same numbers.

namespace {

// The random bits of a group of elements: two words from the generator.
struct Bits4 {
  uint32_t at[kVector];
};
CKPLAN_DEVICE inline Bits4 BitsOf(const CounterRng& rng, int64_t group) {
  const uint64_t first = rng.Word(2 * group);
  const uint64_t second = rng.Word(2 * group + 1);
  return Bits4{{static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32),
                static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32)}};
}

// Computes y[i] = f(bits of i, x[i]). Each thread computes one group of kWide elements.
template <typename F>
struct DrawGroup {
  CounterRng rng;
  int64_t count;
  FloatsOut y;
  F f;
  FloatsIn x;
  CKPLAN_DEVICE void operator()(int64_t group) const {
    constexpr int64_t kParts = kWide / kVector;
    const int64_t first = group * kWide;
    if (first + kWide > count) {
      for (int64_t i = first; i < count; ++i) y.Set(i, f(rng.Bits(i), x[i]));
      return;
    }
    Float8 values = x.LoadWide(group);
    CKPLAN_UNROLL
    for (int64_t part = 0; part < kParts; ++part) {
      const Bits4 bits = BitsOf(rng, kParts * group + part);
      CKPLAN_UNROLL
      for (int k = 0; k < kVector; ++k) {
        float& value = values.at[part * kVector + k];
        value = f(bits.at[k], value);
      }
    }
    y.StoreWide(group, values);
  }
};

template <typename F>
void Draw(Device& device, uint64_t seed, int64_t count, FloatsOut y, const F& f, FloatsIn x) {
  ForEach(device, CeilDiv(count, kWide), DrawGroup<F>{CounterRng(seed), count, y, f, x});
}

// ---- Dropout ------------------------------------------------------------------------------------

// Always in training mode, even if the model was exported for inference.
class DropoutOp final : public PreparedOp {
 public:
  DropoutOp(const OpSpec& spec, Device& device, double ratio)
      : device_(device),
        count_(spec.input(0).elements()),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        mask_type_(spec.output(1).type),
        drop_(ratio) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] != nullptr) {
      Draw(device_, call.seed, count_, FloatsOut(call.outputs[0], y_type_), drop_,
           FloatsIn(call.inputs[0], x_type_));
    }
    if (call.outputs.size() < 2 || call.outputs[1] == nullptr) return;
    if (IsFloat(mask_type_)) {
      WriteMask(call.seed, Writer<float>(call.outputs[1], mask_type_));
    } else {
      WriteMask(call.seed, Writer<uint8_t>(call.outputs[1], mask_type_));
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Draw(device_, call.seed, count_, FloatsOut(gradient, x_type_), drop_,
         FloatsIn(call.output_gradients[0], y_type_));
  }

  // Public, because nvcc does not allow kernels in private methods.
  template <typename T>
  void WriteMask(uint64_t seed, const Writer<T>& mask) const {
    const CounterRng rng(seed);
    const scalar::Drop drop = drop_;
    ForEach(device_, count_,
            [=] CKPLAN_KERNEL(int64_t i) { mask.Set(i, drop.Keeps(rng.Bits(i)) ? T{1} : T{0}); });
  }

 private:
  Device& device_;
  int64_t count_;
  ElementType x_type_, y_type_, mask_type_;  // Before opset 10 the mask is a float.
  scalar::Drop drop_;
};

Result<std::unique_ptr<PreparedOp>> PrepareDropout(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const double ratio, ReadDropoutRatio(spec));
  return Prepared<DropoutOp>(spec, device, ratio);
}

constexpr OpRow kRandomOps[] = {
    {"Dropout", PrepareDropout},
};

}  // namespace

std::span<const OpRow> RandomOps() { return kRandomOps; }

}  // namespace ckplan::cuda
