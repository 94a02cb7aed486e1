// Dropout and the operators that draw random numbers. Each number is a function of the call's seed
// and the element's index, so backward draws the same numbers as forward.
#include "lib/executor/scalar/random.h"

#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/problem/ops/generate.h"

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
