// Elementwise operators with any number of inputs: sums, maxima and minima.
#include <algorithm>
#include <vector>

#include "lib/executor/cuda/ops/elementwise.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/binary.h"

namespace ckplan::cuda {

namespace {

// One kernel takes all inputs and reads them all before it writes, because the output may share
// memory with any of them. A kernel's arguments are limited to 4 KiB.
constexpr int kMaxInputs = 24;

using NaryWalk = BroadcastWalk<kMaxInputs>;

Layout NaryLayout(const OpSpec& spec) {
  std::vector<Dims> dims;
  for (const Operand& input : spec.inputs) dims.push_back(input.dims);
  return BroadcastLayout(spec.output(0).dims, dims);
}

// The work of one thread that combines all inputs.
template <typename F>
struct FoldFloats {
  NaryWalk walk;
  FloatsIn in[kMaxInputs];
  int count;
  float scale;
  FloatsOut out;

  CKPLAN_DEVICE void operator()(int64_t step) const {
    if (walk.IsWholeGroup(step)) {
      Float4 sum = walk.Load(in[0], 0, walk.FindOne(0, step));
      for (int k = 1; k < count; ++k) {
        const Float4 next = walk.Load(in[k], k, walk.FindOne(k, step));
        for (int lane = 0; lane < kVector; ++lane) {
          sum.at[lane] = F::Value(sum.at[lane], next.at[lane]);
        }
      }
      for (int lane = 0; lane < kVector; ++lane) sum.at[lane] *= scale;
      out.Store(step, sum);
    } else if (!walk.is_grouped()) {
      float sum = in[0][walk.FindOne(0, step)];
      for (int k = 1; k < count; ++k) sum = F::Value(sum, in[k][walk.FindOne(k, step)]);
      out.Set(step, sum * scale);
    } else {
      for (int64_t i = step * kVector; i < walk.count(); ++i) {
        float sum = At(0, step, i);
        for (int k = 1; k < count; ++k) sum = F::Value(sum, At(k, step, i));
        out.Set(i, sum * scale);
      }
    }
  }
  CKPLAN_DEVICE float At(int k, int64_t step, int64_t i) const {
    return in[k][walk.Tail(k, walk.FindOne(k, step), i - step * kVector)];
  }
};

// Computes an input element's gradient from an output element's gradient.
struct ScaleGradient {
  float scale;
  CKPLAN_DEVICE float operator()(float g) const { return g * scale; }
};
struct ScaledTerm {
  FloatsIn g;
  float scale;
  CKPLAN_DEVICE float operator()(const DeviceLayout<1>::Offsets& at) const {
    return g[at[0]] * scale;
  }
};

// The gradient of Max and Min. Among equal inputs, the first one receives it.
template <typename F>
struct ExtremeGradient {
  DeviceLayout<kMaxInputs> layout;  // In elements.
  FloatsIn in[kMaxInputs];
  int count;
  int position;
  FloatsIn g;

  // Returns the gradient for the output element at this index.
  CKPLAN_DEVICE float Of(int64_t i) const {
    const float own = in[position][layout.FindOne(position, i)];
    bool wins = true;
    for (int k = 0; k < count; ++k) {
      if (k == position) continue;
      const float other = in[k][layout.FindOne(k, i)];
      wins = wins && F::Value(own, other) == own && (own != other || position < k);
    }
    return wins ? g[i] : 0.0F;
  }
  CKPLAN_DEVICE float operator()(const DeviceLayout<1>::Offsets& at) const { return Of(at[0]); }
};
template <typename F>
struct StoreExtremeGradient {
  ExtremeGradient<F> from;
  FloatsOut out;
  CKPLAN_DEVICE void operator()(int64_t i) const { out.Set(i, from.Of(i)); }
};

// Base class of float operators: runs forward, and reduces gradients to the inputs' shapes.
template <typename F>
class NaryOp : public PreparedOp {
 public:
  NaryOp(const OpSpec& spec, Device& device, float scale)
      : device_(device),
        count_(spec.output(0).elements()),
        scale_(scale),
        y_type_(spec.output(0).type) {
    const Layout layout = NaryLayout(spec);
    walk_ = NaryWalk(layout);
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      types_.push_back(spec.inputs[i].type);
      is_whole_.push_back(spec.inputs[i].elements() == count_);
      const bool is_reduced = !is_whole_[i] && spec.inputs[i].has_gradient;
      sums_.push_back(is_reduced ? SumInto(layout, i) : BroadcastSum<1>());
      workspace_ = std::max(workspace_, sums_.back().workspace());
    }
  }
  OpWorkspace workspace() const override { return {0, workspace_}; }

  void Forward(const ForwardCall& call) override {
    FoldFloats<F> fold{walk_, {}, 0, scale_, FloatsOut(call.outputs[0], y_type_)};
    fold.count = static_cast<int>(types_.size());
    SetInputs(call.inputs, fold.in);
    ForEach(device_, walk_.steps(), fold);
  }

 protected:
  void SetInputs(std::span<const void* const> inputs, FloatsIn* in) const {
    for (size_t k = 0; k < types_.size(); ++k) in[k] = FloatsIn(inputs[k], types_[k]);
  }

  Device& device_;
  int64_t count_;
  float scale_;
  ElementType y_type_;
  std::vector<ElementType> types_;
  std::vector<bool> is_whole_;
  std::vector<BroadcastSum<1>> sums_;

 private:
  // Walks only the output's offset, because the other offsets follow from it.
  static BroadcastSum<1> SumInto(const Layout& layout, size_t input) {
    return BroadcastSum<1>({layout.dims, {layout.strides.back(), layout.strides[input]}}, 1);
  }

  NaryWalk walk_;
  int64_t workspace_ = 0;
};

// Sum, and Mean as a sum with a scale.
class SumOp final : public NaryOp<scalar::Add> {
 public:
  using NaryOp::NaryOp;
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsOut out(gradient, types_[position]);
    if (is_whole_[position]) {
      Map(device_, count_, out, ScaleGradient{scale_}, g);
    } else {
      sums_[position].Run(device_, out, ScaledTerm{g, scale_}, call.workspace);
    }
  }
};

template <typename F>
class ExtremeOp final : public NaryOp<F> {
 public:
  ExtremeOp(const OpSpec& spec, Device& device)
      : NaryOp<F>(spec, device, 1.0F), layout_(Elements(spec)) {}
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    ExtremeGradient<F> from{layout_,
                            {},
                            0,
                            static_cast<int>(position),
                            FloatsIn(call.output_gradients[0], this->y_type_)};
    from.count = static_cast<int>(this->types_.size());
    this->SetInputs(call.inputs, from.in);
    const FloatsOut out(gradient, this->types_[position]);
    if (this->is_whole_[position]) {
      ForEach(this->device_, this->count_, StoreExtremeGradient<F>{from, out});
    } else {
      this->sums_[position].Run(this->device_, out, from, call.workspace);
    }
  }

 private:
  static DeviceLayout<kMaxInputs> Elements(const OpSpec& spec) {
    Layout layout = NaryLayout(spec);
    layout.strides.resize(kMaxInputs, Dims(layout.dims.size(), 0));
    return DeviceLayout<kMaxInputs>(layout);
  }

  DeviceLayout<kMaxInputs> layout_;
};

template <typename T>
struct Pointers {
  const T* at[kMaxInputs];
};

template <typename T, typename F>
class IntegerNaryOp final : public PreparedOp {
 public:
  IntegerNaryOp(const OpSpec& spec, Device& device)
      : device_(device), inputs_(static_cast<int>(spec.inputs.size())) {
    Layout layout = NaryLayout(spec);
    layout.strides.resize(kMaxInputs, Dims(layout.dims.size(), 0));
    layout_ = DeviceLayout<kMaxInputs>(layout);
  }

  void Forward(const ForwardCall& call) override {
    Pointers<T> in{};
    for (int k = 0; k < inputs_; ++k) {
      in.at[k] = static_cast<const T*>(call.inputs[static_cast<size_t>(k)]);
    }
    auto* y = static_cast<T*>(call.outputs[0]);
    const DeviceLayout<kMaxInputs> layout = layout_;
    const int count = inputs_;
    ForEach(device_, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
      T value = in.at[0][layout.FindOne(0, i)];
      for (int k = 1; k < count; ++k) value = F::Value(value, in.at[k][layout.FindOne(k, i)]);
      y[i] = value;
    });
  }
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "only operators with a gradient run backward");
  }

 private:
  Device& device_;
  int inputs_;
  DeviceLayout<kMaxInputs> layout_;
};

Result<Done> CheckShape(const OpSpec& spec) {
  if (spec.inputs.size() > kMaxInputs) return Unsupported(spec, "it has more than 24 inputs");
  if (!FitsDevice(NaryLayout(spec))) return Unsupported(spec, kTooManyAxes);
  return Done{};
}

Result<std::unique_ptr<PreparedOp>> PrepareSum(const OpSpec& spec, Device& device) {
  CKPLAN_RETURN_IF_ERROR(CheckShape(spec));
  const float scale = spec.type == "Mean" ? 1.0F / static_cast<float>(spec.inputs.size()) : 1.0F;
  return Prepared<SumOp>(spec, device, scale);
}

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareExtreme(const OpSpec& spec, Device& device) {
  CKPLAN_RETURN_IF_ERROR(CheckShape(spec));
  if (IsFloat(spec.input(0).type)) return Prepared<ExtremeOp<F>>(spec, device);
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<IntegerNaryOp<int32_t, F>>(spec, device);
  }
  return Prepared<IntegerNaryOp<int64_t, F>>(spec, device);
}

constexpr std::string_view kLimits = "at most 24 inputs";

constexpr OpRow kNaryOps[] = {
    {"Sum", PrepareSum, kLimits},
    {"Mean", PrepareSum, kLimits},
    {"Max", PrepareExtreme<scalar::Larger>, kLimits},
    {"Min", PrepareExtreme<scalar::Smaller>, kLimits},
};

}  // namespace

std::span<const OpRow> NaryOps() { return kNaryOps; }

}  // namespace ckplan::cuda
