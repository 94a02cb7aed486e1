// RotaryEmbedding: rotates pairs of features by an angle that grows with the position. Backward
// rotates the gradient by the negative angle.
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/attention.h"

namespace ckplan::cuda {

namespace {

// The work of one thread: a pair of features, or a feature that is copied unchanged.
struct Turn {
  Divider units, length, heads, length_heads;
  int64_t features, half;
  bool is_head_major, is_interleaved;
  int64_t cache_rows;
  float direction;
  FloatsIn cosines, sines;
  const int64_t* positions;
  FloatsIn from;
  FloatsOut to;

  CKPLAN_DEVICE void operator()(int64_t i) const {
    int64_t unit = i;
    const int64_t row = units.Split(unit);
    const int64_t start = row * features;
    if (unit >= half) {
      const int64_t at = start + half + unit;
      to.Set(at, from[at]);
      return;
    }
    const int64_t angle = CachedRow(row) * half + unit;
    const float cosine = cosines[angle];
    const float sine = direction * sines[angle];
    const int64_t first_at = start + (is_interleaved ? 2 * unit : unit);
    const int64_t second_at = first_at + (is_interleaved ? 1 : half);
    const float first = from[first_at];
    const float second = from[second_at];
    to.Set(first_at, first * cosine - second * sine);
    to.Set(second_at, first * sine + second * cosine);
  }

  CKPLAN_DEVICE int64_t CachedRow(int64_t row) const {
    int64_t token = row;
    const int64_t sample = length_heads.Split(token);
    int64_t place = token;
    if (is_head_major) {
      length.Split(place);
    } else {
      place = heads.Quotient(token);
    }
    const int64_t cached = sample * length.divisor() + place;
    return positions == nullptr ? cached : Max(0, Min(positions[cached], cache_rows - 1));
  }
};

// Returns the number of threads per row: one per pair, and one per copied feature.
int64_t UnitsOf(const RotaryShape& shape) { return shape.features - shape.rotated / 2; }

class RotaryOp final : public PreparedOp {
 public:
  RotaryOp(const OpSpec& spec, Device& device, const RotaryShape& shape)
      : device_(device),
        count_(shape.rows() * UnitsOf(shape)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        cosine_type_(spec.input(1).type),
        sine_type_(spec.input(2).type) {
    if (count_ == 0) return;
    turn_.units = Divider(UnitsOf(shape));
    turn_.length = Divider(shape.length);
    turn_.heads = Divider(shape.heads);
    turn_.length_heads = Divider(shape.length * shape.heads);
    turn_.features = shape.features;
    turn_.half = shape.rotated / 2;
    turn_.is_head_major = shape.is_head_major;
    turn_.is_interleaved = shape.is_interleaved;
    turn_.cache_rows = shape.cache_rows;
  }

  void Forward(const ForwardCall& call) override {
    Rotate(call.inputs, 1.0F, FloatsIn(call.inputs[0], x_type_),
           FloatsOut(call.outputs[0], y_type_));
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Rotate(call.inputs, -1.0F, FloatsIn(call.output_gradients[0], y_type_),
           FloatsOut(gradient, x_type_));
  }

 private:
  void Rotate(std::span<const void* const> inputs, float direction, const FloatsIn& from,
              const FloatsOut& to) const {
    Turn turn = turn_;
    turn.direction = direction;
    turn.cosines = FloatsIn(inputs[1], cosine_type_);
    turn.sines = FloatsIn(inputs[2], sine_type_);
    turn.positions = turn.cache_rows > 0 ? static_cast<const int64_t*>(inputs[3]) : nullptr;
    turn.from = from;
    turn.to = to;
    ForEach(device_, count_, turn);
  }

  Device& device_;
  int64_t count_;
  ElementType x_type_, y_type_, cosine_type_, sine_type_;
  Turn turn_{};
};

Result<std::unique_ptr<PreparedOp>> PrepareRotary(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const RotaryShape shape, ReadRotaryShape(spec));
  return Prepared<RotaryOp>(spec, device, shape);
}

constexpr OpRow kRotaryOps[] = {{"RotaryEmbedding", PrepareRotary}};

}  // namespace

std::span<const OpRow> RotaryOps() { return kRotaryOps; }

}  // namespace ckplan::cuda
