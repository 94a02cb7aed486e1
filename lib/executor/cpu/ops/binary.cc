// Arithmetic operators with two operands.
#include "lib/executor/scalar/binary.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lib/executor/cpu/ops/elementwise.h"
#include "lib/executor/cpu/registry.h"
#include "lib/problem/ops/elementwise.h"

namespace ckplan::cpu {

namespace {

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<BinaryMap<int32_t, int32_t, Op>>(spec);
  }
  return Prepared<BinaryMap<int64_t, int64_t, Op>>(spec);
}

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareBinary(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kFloat32) return Prepared<BinaryOp<Op>>(spec);
  return PrepareIntegers<Op>(spec);
}

Result<std::unique_ptr<PreparedOp>> PreparePRelu(const OpSpec& spec) {
  return Prepared<BinaryOp<scalar::PRelu>>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareMod(const OpSpec& spec) {
  if (spec.Int("fmod", 0) != 0) return PrepareBinary<scalar::Remainder>(spec);
  return PrepareIntegers<scalar::Modulo>(spec);
}

template <typename Op>
std::unique_ptr<PreparedOp> MakePower(const OpSpec& spec, const Op& op) {
  return std::make_unique<UnaryOp<Op>>(spec, op);
}

std::unique_ptr<PreparedOp> MakeKnownPower(const OpSpec& spec, double exponent) {
  if (exponent == 2) return MakePower(spec, scalar::Square());
  if (exponent == 3) return MakePower(spec, scalar::Cube());
  if (exponent == 0.5) return MakePower(spec, scalar::SquareRoot());
  if (exponent == -0.5) return MakePower(spec, scalar::InverseRoot());
  return MakePower(spec, scalar::PowerOf{static_cast<float>(exponent)});
}

Result<std::unique_ptr<PreparedOp>> PreparePow(const OpSpec& spec) {
  if (const auto exponent = KnownExponent(spec)) return MakeKnownPower(spec, *exponent);
  return PrepareBinary<scalar::Pow>(spec);
}

constexpr OpRow kBinaryOps[] = {
    {"Add", PrepareBinary<scalar::Add>},
    {"Sub", PrepareBinary<scalar::Sub>},
    {"Mul", PrepareBinary<scalar::Mul>},
    {"Div", PrepareBinary<scalar::Div>},
    {"Mod", PrepareMod},
    {"Pow", PreparePow},
    {"PRelu", PreparePRelu},
};

}  // namespace

std::span<const OpRow> BinaryOps() { return kBinaryOps; }

// Comparisons, boolean logic, and selection by a condition.

namespace {

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareTest(const OpSpec& spec) {
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
      return Prepared<BinaryMap<float, uint8_t, F>>(spec);
    case ElementType::kInt32:
      return Prepared<BinaryMap<int32_t, uint8_t, F>>(spec);
    case ElementType::kInt64:
      return Prepared<BinaryMap<int64_t, uint8_t, F>>(spec);
    case ElementType::kBool:
      return Prepared<BinaryMap<uint8_t, uint8_t, F>>(spec);
    case ElementType::kBFloat16:  // The backend has rejected bfloat16.
      break;
  }
  return Unsupported(spec, "its inputs are bfloat16");
}

template <typename T>
class WhereMap : public PreparedOp {
 public:
  explicit WhereMap(const OpSpec& spec)
      : layout_(BroadcastLayout(spec.output(0).dims,
                                {spec.input(0).dims, spec.input(1).dims, spec.input(2).dims})) {}

  void Forward(const ForwardCall& call) override {
    const auto* c = static_cast<const uint8_t*>(call.inputs[0]);
    const auto* a = static_cast<const T*>(call.inputs[1]);
    const auto* b = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    const int64_t c_stride = layout_.inner_stride(0);
    const int64_t a_stride = layout_.inner_stride(1);
    const int64_t b_stride = layout_.inner_stride(2);
    ForRuns(layout_, [=](const int64_t* at, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        const T first = a[at[1] + i * a_stride];
        const T second = b[at[2] + i * b_stride];
        y[at[3] + i] = c[at[0] + i * c_stride] != 0 ? first : second;
      }
    });
  }

 protected:
  Layout layout_;
};

class WhereOp final : public WhereMap<float> {
 public:
  explicit WhereOp(const OpSpec& spec) : WhereMap<float>(spec) {
    for (const size_t input : {size_t{1}, size_t{2}}) {
      is_whole_[input] = spec.inputs[input].elements() == spec.output(0).elements();
      if (!is_whole_[input] && spec.inputs[input].has_gradient) {
        reductions_[input] = Reduction(layout_, input);
      }
    }
  }
  OpWorkspace workspace() const override {
    return {0, std::max(reductions_[1].workspace(), reductions_[2].workspace())};
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* c = static_cast<const uint8_t*>(call.inputs[0]);
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    const int64_t c_stride = layout_.inner_stride(0);
    const bool chosen = position == 1;
    const auto choose = [=](const int64_t* at, int64_t length, float* to) -> const float* {
      for (int64_t i = 0; i < length; ++i) {
        to[i] = (c[at[0] + i * c_stride] != 0) == chosen ? g[at[3] + i] : 0.0F;
      }
      return to;
    };
    if (is_whole_[position]) {
      ForRuns(layout_, [=](const int64_t* at, int64_t length) { choose(at, length, dx + at[3]); });
    } else {
      reductions_[position].Run<SumOf>(dx, call.workspace, choose);
    }
  }

 private:
  bool is_whole_[3] = {};
  Reduction reductions_[3];
};

Result<std::unique_ptr<PreparedOp>> PrepareWhere(const OpSpec& spec) {
  switch (spec.input(1).type) {
    case ElementType::kInt64:
      return Prepared<WhereMap<int64_t>>(spec);
    case ElementType::kInt32:
      return Prepared<WhereMap<int32_t>>(spec);
    case ElementType::kBool:
      return Prepared<WhereMap<uint8_t>>(spec);
    default:
      return Prepared<WhereOp>(spec);
  }
}

constexpr OpRow kLogicOps[] = {
    {"Equal", PrepareTest<scalar::Equal>},
    {"Less", PrepareTest<scalar::Less>},
    {"LessOrEqual", PrepareTest<scalar::LessOrEqual>},
    {"Greater", PrepareTest<scalar::Greater>},
    {"GreaterOrEqual", PrepareTest<scalar::GreaterOrEqual>},
    {"And", PrepareTest<scalar::And>},
    {"Or", PrepareTest<scalar::Or>},
    {"Xor", PrepareTest<scalar::Xor>},
    {"BitwiseAnd", PrepareIntegers<scalar::BitwiseAnd>},
    {"BitwiseOr", PrepareIntegers<scalar::BitwiseOr>},
    {"BitwiseXor", PrepareIntegers<scalar::BitwiseXor>},
    {"Where", PrepareWhere},
};

}  // namespace

std::span<const OpRow> LogicOps() { return kLogicOps; }

// Elementwise operators with any number of inputs: sums, maxima and minima.

namespace {

// Results go through a buffer, because the output may share memory with any input.
constexpr int64_t kBlock = 512;

template <typename T, typename F>
class NaryMap : public PreparedOp {
 public:
  NaryMap(const OpSpec& spec, float scale) : count_(spec.inputs.size()), scale_(scale) {
    std::vector<Dims> dims;
    for (const Operand& input : spec.inputs) dims.push_back(input.dims);
    layout_ = BroadcastLayout(spec.output(0).dims, dims);
  }

  void Forward(const ForwardCall& call) override {
    auto* y = static_cast<T*>(call.outputs[0]);
    ForRuns(layout_, [&, y](const int64_t* at, int64_t length) {
      std::array<T, kBlock> block;
      for (int64_t begin = 0; begin < length; begin += kBlock) {
        const int64_t size = std::min(kBlock, length - begin);
        FoldBlock(call, at, begin, size, block.data());
        std::copy(block.data(), block.data() + size, y + at[count_] + begin);
      }
    });
  }

 protected:
  const T* At(std::span<const void* const> inputs, size_t input, const int64_t* at,
              int64_t begin) const {
    return static_cast<const T*>(inputs[input]) + at[input] + begin * layout_.inner_stride(input);
  }

  void FoldBlock(const ForwardCall& call, const int64_t* at, int64_t begin, int64_t size,
                 T* block) const {
    const T* first = At(call.inputs, 0, at, begin);
    MapRun(first, layout_.inner_stride(0), first, layout_.inner_stride(0), block, size,
           [](T a, T) { return a; });
    for (size_t k = 1; k < count_; ++k) {
      MapRun(block, int64_t{1}, At(call.inputs, k, at, begin), layout_.inner_stride(k), block, size,
             [](T a, T b) { return F::Value(a, b); });
    }
    if constexpr (std::is_same_v<T, float>) {
      if (scale_ == 1) return;
      for (int64_t i = 0; i < size; ++i) block[i] *= scale_;
    }
  }

  size_t count_;
  float scale_;
  Layout layout_;  // The operands are all inputs, followed by the output.
};

// Reduces a gradient to the shapes of the inputs.
template <typename F>
class NaryOp : public NaryMap<float, F> {
 public:
  NaryOp(const OpSpec& spec, float scale) : NaryMap<float, F>(spec, scale) {
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      is_whole_.push_back(spec.inputs[i].elements() == spec.output(0).elements());
      const bool is_reduced = !is_whole_[i] && spec.inputs[i].has_gradient;
      reductions_.push_back(is_reduced ? Reduction(this->layout_, i) : Reduction());
      workspace_ = std::max(workspace_, reductions_.back().workspace());
    }
  }
  OpWorkspace workspace() const override { return {0, workspace_}; }

 protected:
  // segment(at, length, buffer) returns a run of the gradient, as Reduction requires.
  template <typename Segment>
  void Gather(const BackwardCall& call, size_t position, float* gradient,
              const Segment& segment) const {
    if (!is_whole_[position]) {
      reductions_[position].template Run<SumOf>(gradient, call.workspace, segment);
      return;
    }
    ForRuns(this->layout_, [&](const int64_t* at, int64_t length) {
      std::array<float, Reduction::kTile> buffer;
      for (int64_t begin = 0; begin < length; begin += Reduction::kTile) {
        const int64_t size = std::min(Reduction::kTile, length - begin);
        Dims moved(at, at + this->count_ + 1);
        for (size_t k = 0; k < moved.size(); ++k) moved[k] += begin * this->layout_.inner_stride(k);
        const float* values = segment(moved.data(), size, buffer.data());
        std::copy(values, values + size, gradient + moved[this->count_]);
      }
    });
  }

 private:
  std::vector<bool> is_whole_;
  std::vector<Reduction> reductions_;
  int64_t workspace_ = 0;
};

// Sum, and Mean as a sum with a scale.
class SumOp final : public NaryOp<scalar::Add> {
 public:
  using NaryOp::NaryOp;
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    const auto segment = [&](const int64_t* at, int64_t length, float* buffer) -> const float* {
      if (scale_ == 1) return g + at[count_];
      for (int64_t i = 0; i < length; ++i) buffer[i] = g[at[count_] + i] * scale_;
      return buffer;
    };
    Gather(call, position, static_cast<float*>(gradient), segment);
  }
};

// Max and Min. Among equal inputs, the first one receives the gradient.
template <typename F>
class ExtremeOp final : public NaryOp<F> {
 public:
  explicit ExtremeOp(const OpSpec& spec) : NaryOp<F>(spec, 1) {}
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    const auto segment = [&](const int64_t* at, int64_t length, float* buffer) -> const float* {
      const int64_t stride = this->layout_.inner_stride(position);
      const float* own = this->At(call.inputs, position, at, 0);
      std::copy_n(g + at[this->count_], length, buffer);
      for (size_t k = 0; k < this->count_; ++k) {
        if (k == position) continue;
        const float* other = this->At(call.inputs, k, at, 0);
        const int64_t other_stride = this->layout_.inner_stride(k);
        for (int64_t i = 0; i < length; ++i) {
          const float a = own[i * stride];
          const float b = other[i * other_stride];
          const bool wins = F::Value(a, b) == a && (a != b || position < k);
          buffer[i] = wins ? buffer[i] : 0.0F;
        }
      }
      return buffer;
    };
    this->Gather(call, position, static_cast<float*>(gradient), segment);
  }
};

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareIntegerNary(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt32) return Prepared<NaryMap<int32_t, F>>(spec, 1.0F);
  return Prepared<NaryMap<int64_t, F>>(spec, 1.0F);
}

Result<std::unique_ptr<PreparedOp>> PrepareSum(const OpSpec& spec) {
  const float scale = spec.type == "Mean" ? 1.0F / static_cast<float>(spec.inputs.size()) : 1.0F;
  return Prepared<SumOp>(spec, scale);
}

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareExtreme(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kFloat32) return Prepared<ExtremeOp<F>>(spec);
  return PrepareIntegerNary<F>(spec);
}

constexpr OpRow kNaryOps[] = {
    {"Sum", PrepareSum},
    {"Mean", PrepareSum},
    {"Max", PrepareExtreme<scalar::Larger>},
    {"Min", PrepareExtreme<scalar::Smaller>},
};

}  // namespace

std::span<const OpRow> NaryOps() { return kNaryOps; }

}  // namespace ckplan::cpu
