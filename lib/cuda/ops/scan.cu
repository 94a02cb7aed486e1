// CumSum: running sums along an axis.
#include <type_traits>

#include "lib/cuda/families.h"
#include "lib/cuda/index.h"
#include "lib/cuda/launch.h"
#include "lib/ops/axes.h"

namespace ckplan::cuda {

namespace {

// Integers wrap: unsigned ones of their size are summed.
template <typename T>
struct WrappedIn {
  using Sum = std::make_unsigned_t<T>;
  const Sum* data;
  WrappedIn(const void* from, ElementType) : data(static_cast<const Sum*>(from)) {}
  CKPLAN_DEVICE Sum operator[](int64_t i) const { return data[i]; }
};
template <typename T>
struct WrappedOut {
  using Sum = std::make_unsigned_t<T>;
  Sum* data;
  WrappedOut(void* to, ElementType) : data(static_cast<Sum*>(to)) {}
  CKPLAN_DEVICE void Set(int64_t i, Sum value) const { data[i] = value; }
};

// The lines along the axis, each cut into chunks. A thread has a chunk of a line; neighbouring
// threads have neighbouring lines.
struct Lines {
  int64_t count = 0, size = 0;
  int64_t chunk = 1, chunks = 0;
  bool is_reverse = false;
  Divider inner, per_line;

  Lines() = default;
  Lines(const AxisView& view, bool reverse)
      : count(view.outer * view.inner), size(view.size), chunk(view.size), is_reverse(reverse) {
    constexpr int64_t kShort = 64;
    constexpr int64_t kManyLines = int64_t{1} << 16;
    if (count * size == 0) return;
    if (size > kShort && count < kManyLines) {
      chunk = 16;
      while (chunk * chunk < size) chunk *= 2;
    }
    chunks = CeilDiv(size, chunk);
    inner = Divider(view.inner);
    per_line = Divider(chunks);
  }

  int64_t pieces() const { return count * chunks; }

  struct Piece {
    int64_t first, step;  // Where its elements lie.
    int64_t length;
  };
  CKPLAN_DEVICE Piece Find(int64_t piece) const {
    int64_t column = piece;
    int64_t index = inner.Split(column);
    const int64_t outer = per_line.Split(index);
    const int64_t begin = index * chunk;
    const int64_t place = is_reverse ? size - 1 - begin : begin;
    return {(outer * size + place) * inner.divisor() + column,
            is_reverse ? -inner.divisor() : inner.divisor(), Min(chunk, size - begin)};
  }
  // Of the first piece of a line; the next ones lie inner.divisor() apart.
  CKPLAN_DEVICE int64_t FirstPiece(int64_t line) const {
    int64_t column = line;
    const int64_t outer = inner.Split(column);
    return outer * chunks * inner.divisor() + column;
  }
};

// `before`: of each piece, the sum of what precedes it; null where each line is one piece.
template <typename In, typename Out, typename Sum>
void SumAlong(Device& device, const Lines& lines, bool is_exclusive, In x, Out y, Sum* before) {
  if (lines.chunks > 1) {
    ForEach(device, lines.pieces(), [=] CKPLAN_KERNEL(int64_t i) {
      const Lines::Piece piece = lines.Find(i);
      Sum sum{};
      for (int64_t k = 0; k < piece.length; ++k) sum += x[piece.first + k * piece.step];
      before[i] = sum;
    });
    ForEach(device, lines.count, [=] CKPLAN_KERNEL(int64_t line) {
      const int64_t first = lines.FirstPiece(line);
      Sum sum{};
      for (int64_t k = 0; k < lines.chunks; ++k) {
        const int64_t at = first + k * lines.inner.divisor();
        const Sum own = before[at];
        before[at] = sum;
        sum += own;
      }
    });
  }
  ForEach(device, lines.pieces(), [=] CKPLAN_KERNEL(int64_t i) {
    const Lines::Piece piece = lines.Find(i);
    Sum sum = lines.chunks > 1 ? before[i] : Sum{};
    for (int64_t k = 0; k < piece.length; ++k) {
      const int64_t at = piece.first + k * piece.step;
      const Sum own = x[at];
      if (is_exclusive) y.Set(at, sum);
      sum += own;
      if (!is_exclusive) y.Set(at, sum);
    }
  });
}

template <typename Sum, typename In, typename Out>
class CumSumOp final : public PreparedOp {
 public:
  CumSumOp(const OpSpec& spec, Device& device, size_t axis)
      : device_(device),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        has_gradient_(spec.input(0).has_gradient),
        is_exclusive_(spec.Int("exclusive", 0) != 0) {
    const AxisView view = ViewAlong(spec.input(0).dims, axis);
    const bool is_reverse = spec.Int("reverse", 0) != 0;
    forward_ = Lines(view, is_reverse);
    backward_ = Lines(view, !is_reverse);
  }
  OpWorkspace workspace() const override {
    const int64_t pieces = forward_.chunks > 1 ? forward_.pieces() : 0;
    const int64_t bytes = pieces * static_cast<int64_t>(sizeof(Sum));
    return {bytes, has_gradient_ ? bytes : 0};
  }

  void Forward(const ForwardCall& call) override {
    SumAlong(device_, forward_, is_exclusive_, In(call.inputs[0], x_type_),
             Out(call.outputs[0], y_type_), static_cast<Sum*>(call.workspace));
  }
  // An element went into all sums from its own on: theirs come back to it, from the other end.
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    SumAlong(device_, backward_, is_exclusive_, In(call.output_gradients[0], y_type_),
             Out(gradient, x_type_), static_cast<Sum*>(call.workspace));
  }

 private:
  Device& device_;
  ElementType x_type_, y_type_;
  bool has_gradient_, is_exclusive_;
  Lines forward_, backward_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCumSum(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> axes, KnownInts(spec, 1, "axis"));
  if (!axes.has_value() || axes->size() != 1) return Unsupported(spec, "it has no axis");
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, (*axes)[0], spec.input(0).dims.size()));
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
    case ElementType::kBFloat16:
      return Prepared<CumSumOp<float, FloatsIn, FloatsOut>>(spec, device, axis);
    case ElementType::kInt32:
      return Prepared<CumSumOp<uint32_t, WrappedIn<int32_t>, WrappedOut<int32_t>>>(spec, device,
                                                                                   axis);
    case ElementType::kInt64:
      return Prepared<CumSumOp<uint64_t, WrappedIn<int64_t>, WrappedOut<int64_t>>>(spec, device,
                                                                                   axis);
    default:
      return Unsupported(spec, "its input is boolean");
  }
}

constexpr OpRow kRows[] = {{"CumSum", PrepareCumSum}};

}  // namespace

std::span<const OpRow> RunningSumOps() { return kRows; }

}  // namespace ckplan::cuda
