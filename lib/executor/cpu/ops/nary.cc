// Elementwise operators with any number of inputs: sums, maxima and minima.
#include <algorithm>
#include <array>
#include <type_traits>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/binary.h"
#include "lib/executor/scalar/binary.h"

namespace ckplan::cpu {

namespace {

// Results are collected in a buffer, because the output may share its memory with any input.
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
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
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
  Layout layout_;  // The operands are all inputs, and then the output.
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

// Max and Min. If inputs are equal, the first one receives the gradient.
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
