// Tensors generated from shapes and a few numbers, and masking by position.
#include "lib/problem/ops/generate.h"

#include <algorithm>

#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/executor/scalar/integers.h"
#include "lib/executor/scalar/random.h"

namespace ckplan::cpu {

namespace {

// ---- ConstantOfShape, Shape, Size ---------------------------------------------------------------

// Fills a tensor with one bit pattern.
class FillOp final : public PreparedOp {
 public:
  FillOp(const Operand& output, uint64_t bits)
      : count_(output.elements()), element_bytes_(SizeOf(output.type)), bits_(bits) {}
  void Forward(const ForwardCall& call) override {
    WithElementOf(element_bytes_, [&](auto zero) {
      using T = decltype(zero);
      auto* y = static_cast<T*>(call.outputs[0]);
      const auto value = static_cast<T>(bits_);
      ParallelFor(count_, kGrain,
                  [=](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
    });
  }

 private:
  int64_t count_, element_bytes_;
  uint64_t bits_;
};

uint64_t BitsOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

Result<std::unique_ptr<PreparedOp>> PrepareConstantOfShape(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const FillValue value, ReadConstantOfShape(spec));
  const bool is_float = spec.output(0).type == ElementType::kFloat32;
  return Prepared<FillOp>(spec.output(0), is_float ? BitsOf(static_cast<float>(value.real))
                                                   : static_cast<uint64_t>(value.integer));
}

class ShapeOp final : public PreparedOp {
 public:
  explicit ShapeOp(Dims dims) : dims_(std::move(dims)) {}
  void Forward(const ForwardCall& call) override {
    std::copy(dims_.begin(), dims_.end(), static_cast<int64_t*>(call.outputs[0]));
  }

 private:
  Dims dims_;
};

Result<std::unique_ptr<PreparedOp>> PrepareShape(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(Dims dims, ReadShapeOf(spec));
  return Prepared<ShapeOp>(std::move(dims));
}

// ---- Range --------------------------------------------------------------------------------------

template <typename T>
class RangeOp final : public PreparedOp {
 public:
  explicit RangeOp(const OpSpec& spec) : count_(spec.output(0).elements()) {}
  void Forward(const ForwardCall& call) override {
    const T start = *static_cast<const T*>(call.inputs[0]);
    const T step = *static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    for (int64_t i = 0; i < count_; ++i) y[i] = scalar::RangeValue(start, step, i);
  }

 private:
  int64_t count_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRange(const OpSpec& spec) {
  if (spec.output(0).type == ElementType::kInt32) return Prepared<RangeOp<int32_t>>(spec);
  if (spec.output(0).type == ElementType::kInt64) return Prepared<RangeOp<int64_t>>(spec);
  return Prepared<RangeOp<float>>(spec);
}

// ---- OneHot, EyeLike ----------------------------------------------------------------------------

// I is the index type, T the bits of the values. An index out of range gives the value `off`.
template <typename I, typename T>
class OneHotOp final : public PreparedOp {
 public:
  explicit OneHotOp(const AxisView& view) : view_(view) {}
  void Forward(const ForwardCall& call) override {
    const auto* indices = static_cast<const I*>(call.inputs[0]);
    const auto* values = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    std::fill_n(y, view_.outer * view_.size * view_.inner, values[0]);
    for (int64_t i = 0; i < view_.outer * view_.inner; ++i) {
      auto index = static_cast<int64_t>(indices[i]);
      if (index < 0) index += view_.size;
      if (index < 0 || index >= view_.size) continue;
      y[(i / view_.inner * view_.size + index) * view_.inner + i % view_.inner] = values[1];
    }
  }

 private:
  AxisView view_;
};

template <typename I>
std::unique_ptr<PreparedOp> MakeOneHot(ElementType type, const AxisView& view) {
  std::unique_ptr<PreparedOp> op;
  WithElementOf(SizeOf(type),
                [&](auto zero) { op = std::make_unique<OneHotOp<I, decltype(zero)>>(view); });
  return op;
}

Result<std::unique_ptr<PreparedOp>> PrepareOneHot(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const AxisView view, ReadOneHotShape(spec));
  const ElementType type = spec.output(0).type;
  if (spec.input(0).type == ElementType::kInt32) return MakeOneHot<int32_t>(type, view);
  if (spec.input(0).type == ElementType::kInt64) return MakeOneHot<int64_t>(type, view);
  return MakeOneHot<float>(type, view);
}

class EyeOp final : public PreparedOp {
 public:
  explicit EyeOp(const OpSpec& spec)
      : dims_(spec.output(0).dims), type_(spec.output(0).type), diagonal_(spec.Int("k", 0)) {}
  void Forward(const ForwardCall& call) override {
    const uint64_t one = type_ == ElementType::kFloat32 ? BitsOf(1.0F) : 1;
    WithElementOf(SizeOf(type_), [&](auto zero) {
      using T = decltype(zero);
      auto* y = static_cast<T*>(call.outputs[0]);
      for (int64_t row = 0; row < dims_[0]; ++row) {
        for (int64_t column = 0; column < dims_[1]; ++column) {
          y[row * dims_[1] + column] = column - row == diagonal_ ? static_cast<T>(one) : T{0};
        }
      }
    });
  }

 private:
  Dims dims_;
  ElementType type_;
  int64_t diagonal_;
};

Result<std::unique_ptr<PreparedOp>> PrepareEyeLike(const OpSpec& spec) {
  return Prepared<EyeOp>(spec);
}

// ---- Trilu --------------------------------------------------------------------------------------

// Zeroes each matrix on one side of a diagonal; backward does the same to the gradient.
class TriluOp final : public PreparedOp {
 public:
  TriluOp(const OpSpec& spec, const TriluShape& shape)
      : shape_(shape),
        count_(spec.input(0).elements()),
        element_bytes_(SizeOf(spec.input(0).type)) {}

  void Forward(const ForwardCall& call) override { Keep(call.inputs[0], call.outputs[0]); }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Keep(call.output_gradients[0], gradient);
  }

 private:
  void Keep(const void* from, void* to) const {
    if (count_ == 0) return;
    WithElementOf(element_bytes_, [&](auto zero) {
      using T = decltype(zero);
      const auto* x = static_cast<const T*>(from);
      auto* y = static_cast<T*>(to);
      const int64_t grain = std::max<int64_t>(1, kGrain / shape_.columns);
      ParallelFor(count_ / shape_.columns, grain, [=, this](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) KeepRow(row, x, y);
      });
    });
  }

  template <typename T>
  void KeepRow(int64_t row, const T* x, T* y) const {
    const int64_t columns = shape_.columns;
    const int64_t at = row % shape_.rows + shape_.diagonal;
    const int64_t first = shape_.is_upper ? std::clamp<int64_t>(at, 0, columns) : 0;
    const int64_t last = shape_.is_upper ? columns : std::clamp<int64_t>(at + 1, 0, columns);
    x += row * columns;
    y += row * columns;
    std::fill(y, y + first, T{0});
    std::copy(x + first, x + last, y + first);
    std::fill(y + last, y + columns, T{0});
  }

  TriluShape shape_;
  int64_t count_, element_bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTrilu(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const TriluShape shape, ReadTriluShape(spec));
  return Prepared<TriluOp>(spec, shape);
}

constexpr OpRow kGenerateOps[] = {
    {"ConstantOfShape", PrepareConstantOfShape},
    {"Shape", PrepareShape},
    {"Size", PrepareShape},
    {"Range", PrepareRange},
    {"OneHot", PrepareOneHot},
    {"EyeLike", PrepareEyeLike},
    {"Trilu", PrepareTrilu},
};

}  // namespace

std::span<const OpRow> GenerateOps() { return kGenerateOps; }

// Dropout and random operators. Each number is a function of the call's seed and the element's
// index, so backward draws the same numbers as forward.

namespace {

// Calls body(i, bits) for i in [begin, end), where begin is even.
template <typename Body>
void ForBits(const CounterRng& rng, int64_t begin, int64_t end, const Body& body) {
  int64_t i = begin;
  for (; i + 1 < end; i += 2) {
    const uint64_t word = rng.Word(i / 2);
    body(i, static_cast<uint32_t>(word));
    body(i + 1, static_cast<uint32_t>(word >> 32));
  }
  if (i < end) body(i, rng.Bits(i));
}

// Always in training mode, even if the model was exported for inference.
class DropoutOp final : public PreparedOp {
 public:
  DropoutOp(const OpSpec& spec, double ratio)
      : count_(spec.input(0).elements()),
        drop_(ratio),
        has_float_mask_(IsFloat(spec.output(1).type)) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] != nullptr) Drop(call.seed, call.inputs[0], call.outputs[0]);
    if (call.outputs.size() < 2 || call.outputs[1] == nullptr) return;
    if (has_float_mask_) {
      WriteMask(call.seed, static_cast<float*>(call.outputs[1]));
    } else {
      WriteMask(call.seed, static_cast<uint8_t*>(call.outputs[1]));
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Drop(call.seed, call.output_gradients[0], gradient);
  }

 private:
  void Drop(uint64_t seed, const void* from, void* to) const {
    const auto* x = static_cast<const float*>(from);
    auto* y = static_cast<float*>(to);
    const CounterRng rng(seed);
    ParallelFor(count_, kGrain, [=, drop = drop_](int64_t begin, int64_t end) {
      ForBits(rng, begin, end, [=](int64_t i, uint32_t bits) { y[i] = drop(bits, x[i]); });
    });
  }

  template <typename T>
  void WriteMask(uint64_t seed, T* mask) const {
    const CounterRng rng(seed);
    ParallelFor(count_, kGrain, [=, drop = drop_](int64_t begin, int64_t end) {
      ForBits(rng, begin, end,
              [=](int64_t i, uint32_t bits) { mask[i] = drop.Keeps(bits) ? T{1} : T{0}; });
    });
  }

  int64_t count_;
  scalar::Drop drop_;
  bool has_float_mask_;  // Before opset 10 the mask is a float.
};

Result<std::unique_ptr<PreparedOp>> PrepareDropout(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const double ratio, ReadDropoutRatio(spec));
  return Prepared<DropoutOp>(spec, ratio);
}

// ---- Random tensors -----------------------------------------------------------------------------

class RandomOp : public PreparedOp {
 public:
  explicit RandomOp(const OpSpec& spec) : count_(spec.output(0).elements()) {}

 protected:
  int64_t count_;
};

class UniformOp final : public RandomOp {
 public:
  explicit UniformOp(const OpSpec& spec)
      : RandomOp(spec),
        uniform_(static_cast<float>(spec.Float("low", 0)),
                 static_cast<float>(spec.Float("high", 1))) {}
  void Forward(const ForwardCall& call) override {
    auto* y = static_cast<float*>(call.outputs[0]);
    const CounterRng rng(call.seed);
    ParallelFor(count_, kGrain, [=, uniform = uniform_](int64_t begin, int64_t end) {
      ForBits(rng, begin, end, [=](int64_t i, uint32_t bits) { y[i] = uniform(bits); });
    });
  }

 private:
  scalar::Uniform uniform_;
};

class NormalOp final : public RandomOp {
 public:
  explicit NormalOp(const OpSpec& spec)
      : RandomOp(spec), normal_{spec.Float("mean", 0), spec.Float("scale", 1)} {}
  void Forward(const ForwardCall& call) override {
    auto* y = static_cast<float*>(call.outputs[0]);
    const CounterRng rng(call.seed);
    ParallelFor((count_ + 1) / 2, kGrain / 16, [=, this](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) {
        const scalar::Normal::Pair drawn = normal_(rng.Word(pair));
        y[2 * pair] = drawn.first;
        if (2 * pair + 1 < count_) y[2 * pair + 1] = drawn.second;
      }
    });
  }

 private:
  scalar::Normal normal_;
};

// Writes 1 with the probability given by the input, and 0 otherwise.
template <typename T>
class BernoulliOp final : public RandomOp {
 public:
  using RandomOp::RandomOp;
  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<T*>(call.outputs[0]);
    const CounterRng rng(call.seed);
    ParallelFor(count_, kGrain, [=](int64_t begin, int64_t end) {
      ForBits(rng, begin, end, [=](int64_t i, uint32_t bits) {
        y[i] = scalar::Bernoulli()(bits, x[i]) ? T{1} : T{0};
      });
    });
  }
};

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareRandom(const OpSpec& spec) {
  return Prepared<Op>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareBernoulli(const OpSpec& spec) {
  switch (SizeOf(spec.output(0).type)) {
    case 1:
      return Prepared<BernoulliOp<uint8_t>>(spec);
    case 8:
      return Prepared<BernoulliOp<int64_t>>(spec);
    default:
      break;
  }
  if (spec.output(0).type == ElementType::kInt32) return Prepared<BernoulliOp<int32_t>>(spec);
  return Prepared<BernoulliOp<float>>(spec);
}

constexpr OpRow kRandomOps[] = {
    {"Dropout", PrepareDropout},
    {"RandomUniform", PrepareRandom<UniformOp>},
    {"RandomUniformLike", PrepareRandom<UniformOp>},
    {"RandomNormal", PrepareRandom<NormalOp>},
    {"RandomNormalLike", PrepareRandom<NormalOp>},
    {"Bernoulli", PrepareBernoulli},
};

}  // namespace

std::span<const OpRow> RandomOps() { return kRandomOps; }

}  // namespace ckplan::cpu
