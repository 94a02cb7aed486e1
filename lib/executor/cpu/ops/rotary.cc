// RotaryEmbedding: rotates pairs of features by an angle that grows with the position. Backward
// rotates the gradient by the negative angle.
#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/attention.h"

namespace ckplan::cpu {

namespace {

class RotaryOp final : public PreparedOp {
 public:
  explicit RotaryOp(const RotaryShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    Rotate(call.inputs, 1.0F, call.inputs[0], call.outputs[0]);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Rotate(call.inputs, -1.0F, call.output_gradients[0], gradient);
  }

 private:
  void Rotate(std::span<const void* const> inputs, float direction, const void* from,
              void* to) const {
    const auto* cosines = static_cast<const float*>(inputs[1]);
    const auto* sines = static_cast<const float*>(inputs[2]);
    const auto* positions =
        shape_.cache_rows > 0 ? static_cast<const int64_t*>(inputs[3]) : nullptr;
    const RotaryShape s = shape_;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s.features));
    ParallelFor(s.batch * s.length * s.heads, grain, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t sample = row / (s.length * s.heads);
        const int64_t place = s.is_head_major ? row % s.length : row / s.heads % s.length;
        int64_t cached = sample * s.length + place;
        if (positions != nullptr) {
          cached = std::clamp<int64_t>(positions[cached], 0, s.cache_rows - 1);
        }
        RotateRow(s, cosines + cached * (s.rotated / 2), sines + cached * (s.rotated / 2),
                  direction, static_cast<const float*>(from) + row * s.features,
                  static_cast<float*>(to) + row * s.features);
      }
    });
  }

  static void RotateRow(const RotaryShape& s, const float* cosines, const float* sines,
                        float direction, const float* x, float* y) {
    const int64_t half = s.rotated / 2;
    const int64_t step = s.is_interleaved ? 2 : 1;
    const int64_t apart = s.is_interleaved ? 1 : half;
    for (int64_t i = 0; i < half; ++i) {
      const float first = x[i * step];
      const float second = x[i * step + apart];
      const float sine = direction * sines[i];
      y[i * step] = first * cosines[i] - second * sine;
      y[i * step + apart] = first * sine + second * cosines[i];
    }
    std::copy(x + s.rotated, x + s.features, y + s.rotated);
  }

  RotaryShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRotary(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const RotaryShape shape, ReadRotaryShape(spec));
  return Prepared<RotaryOp>(shape);
}

constexpr OpRow kRotaryOps[] = {{"RotaryEmbedding", PrepareRotary}};

}  // namespace

std::span<const OpRow> RotaryOps() { return kRotaryOps; }

}  // namespace ckplan::cpu
