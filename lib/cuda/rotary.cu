// RotaryEmbedding: pairs of features turned by an angle that grows with the position. The gradient
// is turned back.
#include "lib/cuda/families.h"
#include "lib/cuda/index.h"
#include "lib/cuda/launch.h"

namespace ckplan::cuda {

namespace {

struct RotaryShape {
  int64_t batch = 1, heads = 1, length = 1, features = 1;
  int64_t rotated = 1;          // Features; the rest is copied.
  bool is_head_major = false;   // [batch, heads, length, features], or length before heads.
  bool is_interleaved = false;  // Pairs are neighbours, or lie half of `rotated` apart.
  int64_t cache_rows = 0;       // Positions that the caches have; 0: one for each token.

  int64_t rows() const { return batch * heads * length; }
  int64_t units() const { return features - rotated / 2; }  // Of a row: pairs, then single ones.
};

// One thread's share: a pair, or a feature that is copied.
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

class RotaryOp final : public PreparedOp {
 public:
  RotaryOp(const OpSpec& spec, Device& device, const RotaryShape& shape)
      : device_(device),
        count_(shape.rows() * shape.units()),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        cosine_type_(spec.input(1).type),
        sine_type_(spec.input(2).type) {
    if (count_ == 0) return;
    turn_.units = Divider(shape.units());
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
  const std::vector<int64_t>& x = spec.input(0).dims;
  RotaryShape shape;
  shape.is_interleaved = spec.Int("interleaved", 0) != 0;
  if (x.size() == 4) {
    shape.is_head_major = true;
    shape.heads = x[1];
    shape.length = x[2];
    shape.features = x[3];
  } else if (x.size() == 3) {
    shape.heads = spec.Int("num_heads", 0);
    shape.length = x[1];
    if (shape.heads < 1 || x[2] % shape.heads != 0) {
      return Unsupported(spec, "its num_heads do not divide its features");
    }
    shape.features = x[2] / shape.heads;
  } else {
    return Unsupported(spec, "its input has neither 3 nor 4 axes");
  }
  shape.batch = x[0];
  const int64_t rotated = spec.Int("rotary_embedding_dim", 0);
  shape.rotated = rotated == 0 ? shape.features : rotated;
  const bool has_positions = spec.input(3).is_present;
  if (has_positions && spec.input(3).type != ElementType::kInt64) {
    return Unsupported(spec, "its positions are not int64");
  }
  if (has_positions) shape.cache_rows = spec.input(1).dims[0];
  const int64_t rows = has_positions ? shape.cache_rows : shape.batch * shape.length;
  if (shape.rotated > shape.features || shape.rotated % 2 != 0 ||
      spec.input(1).elements() != rows * (shape.rotated / 2) ||
      spec.input(2).elements() != rows * (shape.rotated / 2)) {
    return Unsupported(spec, "its caches do not fit its features");
  }
  return Prepared<RotaryOp>(spec, device, shape);
}

constexpr OpRow kRows[] = {{"RotaryEmbedding", PrepareRotary}};

}  // namespace

std::span<const OpRow> RotaryOps() { return kRows; }

}  // namespace ckplan::cuda
