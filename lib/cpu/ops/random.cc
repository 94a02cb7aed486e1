// Dropout and the operators that draw random numbers. Each number is a function of the call's seed
// and the element's index, so backward draws the same numbers as forward.
#include "lib/ops/random.h"

#include <algorithm>
#include <cmath>

#include "lib/cpu/families.h"
#include "lib/cpu/parallel.h"
#include "lib/cpu/strided_copy.h"
#include "lib/ops/counter_rng.h"

namespace ckplan::cpu {

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

// Runs in training mode, even if the exported model asks for inference.
class DropoutOp final : public PreparedOp {
 public:
  DropoutOp(const OpSpec& spec, double ratio)
      : count_(spec.input(0).elements()),
        threshold_(DropoutThreshold(ratio)),
        scale_(ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F),
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
    ParallelFor(count_, kGrain, [=, this](int64_t begin, int64_t end) {
      ForBits(rng, begin, end, [=, this](int64_t i, uint32_t bits) {
        y[i] = bits >= threshold_ ? x[i] * scale_ : 0.0F;
      });
    });
  }

  template <typename T>
  void WriteMask(uint64_t seed, T* mask) const {
    const CounterRng rng(seed);
    ParallelFor(count_, kGrain, [=, this](int64_t begin, int64_t end) {
      ForBits(rng, begin, end,
              [=, this](int64_t i, uint32_t bits) { mask[i] = bits >= threshold_ ? T{1} : T{0}; });
    });
  }

  int64_t count_;
  uint64_t threshold_;
  float scale_;
  bool has_float_mask_;  // The mask is a float before opset 10.
};

Result<std::unique_ptr<PreparedOp>> PrepareDropout(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const double ratio, ReadDropoutRatio(spec));
  return Prepared<DropoutOp>(spec, ratio);
}

// ---- Random tensors -----------------------------------------------------------------------------

class RandomOp : public PreparedOp {
 public:
  explicit RandomOp(const OpSpec& spec) : count_(spec.output(0).elements()) {}
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }

 protected:
  int64_t count_;
};

class UniformOp final : public RandomOp {
 public:
  explicit UniformOp(const OpSpec& spec)
      : RandomOp(spec),
        low_(static_cast<float>(spec.Float("low", 0))),
        high_(static_cast<float>(spec.Float("high", 1))) {}
  void Forward(const ForwardCall& call) override {
    auto* y = static_cast<float*>(call.outputs[0]);
    const CounterRng rng(call.seed);
    const float width = high_ - low_;
    ParallelFor(count_, kGrain, [=, this](int64_t begin, int64_t end) {
      ForBits(rng, begin, end, [=, this](int64_t i, uint32_t bits) {
        // Rounding may reach the upper bound, which is excluded from the interval.
        const float value = low_ + width * CounterRng::Uniform(bits);
        y[i] = value < high_ ? value : low_;
      });
    });
  }

 private:
  float low_, high_;
};

// The Box-Muller transform: the two halves of a random word give two normal numbers.
class NormalOp final : public RandomOp {
 public:
  explicit NormalOp(const OpSpec& spec)
      : RandomOp(spec), mean_(spec.Float("mean", 0)), scale_(spec.Float("scale", 1)) {}
  void Forward(const ForwardCall& call) override {
    auto* y = static_cast<float*>(call.outputs[0]);
    const CounterRng rng(call.seed);
    ParallelFor((count_ + 1) / 2, kGrain / 16, [=, this](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) {
        const uint64_t word = rng.Word(pair);
        const double distance = (static_cast<double>(word & 0xFFFFFFFFU) + 0.5) * 0x1p-32;
        const double angle = static_cast<double>(word >> 32) * (2 * M_PI * 0x1p-32);
        const double radius = scale_ * std::sqrt(-2 * std::log(distance));
        y[2 * pair] = static_cast<float>(mean_ + radius * std::cos(angle));
        if (2 * pair + 1 == count_) continue;
        y[2 * pair + 1] = static_cast<float>(mean_ + radius * std::sin(angle));
      }
    });
  }

 private:
  double mean_, scale_;
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
        y[i] = CounterRng::Uniform(bits) < x[i] ? T{1} : T{0};
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
