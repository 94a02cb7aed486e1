// Tensors made of shapes and a few numbers, and the masking by place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/cpu/families.h"
#include "lib/cpu/integers.h"
#include "lib/cpu/strided_copy.h"
#include "lib/ops/axes.h"

namespace ckplan::cpu {

namespace {

class WithoutGradient : public PreparedOp {
 public:
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }
};

// ---- ConstantOfShape, Shape, Size ---------------------------------------------------------------

// The same bits everywhere.
class FillOp final : public WithoutGradient {
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
  uint64_t bits = 0;
  const auto found = spec.attributes.find("value");
  if (found != spec.attributes.end()) {
    const auto* value = std::get_if<KnownValue>(&found->second);
    if (value == nullptr || value->ints.size() + value->reals.size() != 1) {
      return Unsupported(spec, "its value is not one number");
    }
    bits = value->reals.empty() ? static_cast<uint64_t>(value->ints[0])
                                : BitsOf(static_cast<float>(value->reals[0]));
  }
  return std::unique_ptr<PreparedOp>(std::make_unique<FillOp>(spec.output(0), bits));
}

class ShapeOp final : public WithoutGradient {
 public:
  explicit ShapeOp(Dims dims) : dims_(std::move(dims)) {}
  void Forward(const ForwardCall& call) override {
    std::copy(dims_.begin(), dims_.end(), static_cast<int64_t*>(call.outputs[0]));
  }

 private:
  Dims dims_;
};

Result<std::unique_ptr<PreparedOp>> PrepareShape(const OpSpec& spec) {
  const Dims& dims = spec.input(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto bound = [rank](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = bound(spec.Int("start", 0));
  const int64_t end = std::max(begin, bound(spec.Int("end", rank)));
  return std::unique_ptr<PreparedOp>(
      std::make_unique<ShapeOp>(Dims(dims.begin() + begin, dims.begin() + end)));
}

Result<std::unique_ptr<PreparedOp>> PrepareSize(const OpSpec& spec) {
  return std::unique_ptr<PreparedOp>(std::make_unique<ShapeOp>(Dims{spec.input(0).elements()}));
}

// ---- Range --------------------------------------------------------------------------------------

template <typename T>
class RangeOp final : public WithoutGradient {
 public:
  explicit RangeOp(const OpSpec& spec) : count_(spec.output(0).elements()) {}
  void Forward(const ForwardCall& call) override {
    const T start = *static_cast<const T*>(call.inputs[0]);
    const T step = *static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    for (int64_t i = 0; i < count_; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        y[i] = static_cast<float>(static_cast<double>(start) +
                                  static_cast<double>(i) * static_cast<double>(step));
      } else {
        y[i] = WrapAdd(start, WrapMul(static_cast<T>(i), step));
      }
    }
  }

 private:
  int64_t count_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRange(const OpSpec& spec) {
  switch (spec.output(0).type) {
    case ElementType::kFloat32:
      return std::unique_ptr<PreparedOp>(std::make_unique<RangeOp<float>>(spec));
    case ElementType::kInt32:
      return std::unique_ptr<PreparedOp>(std::make_unique<RangeOp<int32_t>>(spec));
    case ElementType::kInt64:
      return std::unique_ptr<PreparedOp>(std::make_unique<RangeOp<int64_t>>(spec));
    default:
      return Unsupported(spec, "a range of booleans is none");
  }
}

// ---- OneHot, EyeLike ----------------------------------------------------------------------------

// I: type of the indices, T: bits of the values. An index outside takes the value `off`.
template <typename I, typename T>
class OneHotOp final : public WithoutGradient {
 public:
  OneHotOp(const OpSpec& spec, size_t axis) : view_(ViewAlong(spec.output(0).dims, axis)) {}
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
std::unique_ptr<PreparedOp> MakeOneHot(const OpSpec& spec, size_t axis) {
  std::unique_ptr<PreparedOp> op;
  WithElementOf(SizeOf(spec.output(0).type),
                [&](auto zero) { op = std::make_unique<OneHotOp<I, decltype(zero)>>(spec, axis); });
  return op;
}

Result<std::unique_ptr<PreparedOp>> PrepareOneHot(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", -1), spec.output(0).dims.size()));
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
      return MakeOneHot<float>(spec, axis);
    case ElementType::kInt32:
      return MakeOneHot<int32_t>(spec, axis);
    case ElementType::kInt64:
      return MakeOneHot<int64_t>(spec, axis);
    default:
      return Unsupported(spec, "its indices are boolean");
  }
}

class EyeOp final : public WithoutGradient {
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
  if (spec.output(0).dims.size() != 2) return Unsupported(spec, "it is no matrix");
  return std::unique_ptr<PreparedOp>(std::make_unique<EyeOp>(spec));
}

// ---- Trilu --------------------------------------------------------------------------------------

// Zeros on one side of a diagonal of each matrix; of the gradient as well.
class TriluOp final : public PreparedOp {
 public:
  TriluOp(const OpSpec& spec, int64_t diagonal)
      : rows_(spec.input(0).dims[spec.input(0).dims.size() - 2]),
        columns_(spec.input(0).dims.back()),
        count_(spec.input(0).elements()),
        element_bytes_(SizeOf(spec.input(0).type)),
        diagonal_(std::clamp(diagonal, -rows_ - 1, columns_ + 1)),
        is_upper_(spec.Int("upper", 1) != 0) {}

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
      const int64_t grain = std::max<int64_t>(1, kGrain / columns_);
      ParallelFor(count_ / columns_, grain, [=, this](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) KeepRow(row, x, y);
      });
    });
  }

  template <typename T>
  void KeepRow(int64_t row, const T* x, T* y) const {
    // Upper keeps columns from row + k on, lower those up to it.
    const int64_t at = row % rows_ + diagonal_;
    const int64_t first = is_upper_ ? std::clamp<int64_t>(at, 0, columns_) : 0;
    const int64_t last = is_upper_ ? columns_ : std::clamp<int64_t>(at + 1, 0, columns_);
    x += row * columns_;
    y += row * columns_;
    std::fill(y, y + first, T{0});
    std::copy(x + first, x + last, y + first);
    std::fill(y + last, y + columns_, T{0});
  }

  int64_t rows_, columns_, count_, element_bytes_, diagonal_;
  bool is_upper_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTrilu(const OpSpec& spec) {
  if (spec.input(0).dims.size() < 2) return Unsupported(spec, "its input is no matrix");
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> k, KnownInts(spec, 1, "k"));
  const int64_t diagonal = k.has_value() && k->size() == 1 ? (*k)[0] : 0;
  return std::unique_ptr<PreparedOp>(std::make_unique<TriluOp>(spec, diagonal));
}

constexpr OpRow kRows[] = {
    {"ConstantOfShape", PrepareConstantOfShape, false},
    {"Shape", PrepareShape, false},
    {"Size", PrepareSize, false},
    {"Range", PrepareRange, false},
    {"OneHot", PrepareOneHot, false},
    {"EyeLike", PrepareEyeLike, false},
    {"Trilu", PrepareTrilu, true, "k must be known before the step"},
};

}  // namespace

std::span<const OpRow> GenerateOps() { return kRows; }

}  // namespace ckplan::cpu
