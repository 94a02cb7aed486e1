// Cumulative sums along one axis.
#include <type_traits>

#include "lib/base/check.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cuda {

namespace {

// Integers wrap, so they are summed as unsigned integers of equal size.
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

// The lines along the axis, each divided into pieces. A thread processes one piece; neighbouring
// threads process neighbouring lines.
struct ScannedLines {
  int64_t count = 0, size = 0;
  int64_t chunk = 1, chunks = 0;
  bool is_reverse = false;
  Divider inner, per_line;

  ScannedLines() = default;
  ScannedLines(const AxisView& view, bool reverse)
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
    int64_t first, step;  // Offsets of its elements.
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
  // Returns the first piece of a line; the others follow at distances of inner.divisor().
  CKPLAN_DEVICE int64_t FirstPiece(int64_t line) const {
    int64_t column = line;
    const int64_t outer = inner.Split(column);
    return outer * chunks * inner.divisor() + column;
  }
};

// `before` has, for each piece, the sum of all elements before it; it is null if each line is one
// piece.
template <typename In, typename Out, typename Sum>
void SumAlong(Device& device, const ScannedLines& lines, bool is_exclusive, In x, Out y,
              Sum* before) {
  if (lines.chunks > 1) {
    ForEach(device, lines.pieces(), [=] CKPLAN_KERNEL(int64_t i) {
      const ScannedLines::Piece piece = lines.Find(i);
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
    const ScannedLines::Piece piece = lines.Find(i);
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
  CumSumOp(const OpSpec& spec, Device& device, const CumSumShape& shape)
      : device_(device),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        has_gradient_(spec.input(0).has_gradient),
        is_exclusive_(shape.is_exclusive),
        forward_(shape.view, shape.is_reverse),
        backward_(shape.view, !shape.is_reverse) {}
  OpWorkspace workspace() const override {
    const int64_t pieces = forward_.chunks > 1 ? forward_.pieces() : 0;
    const int64_t bytes = pieces * static_cast<int64_t>(sizeof(Sum));
    return {bytes, has_gradient_ ? bytes : 0};
  }

  void Forward(const ForwardCall& call) override {
    SumAlong(device_, forward_, is_exclusive_, In(call.inputs[0], x_type_),
             Out(call.outputs[0], y_type_), static_cast<Sum*>(call.workspace));
  }
  // An element contributes to all sums from its position on. Its gradient is therefore the
  // cumulative sum of the sums' gradients from the opposite end.
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    SumAlong(device_, backward_, is_exclusive_, In(call.output_gradients[0], y_type_),
             Out(gradient, x_type_), static_cast<Sum*>(call.workspace));
  }

 private:
  Device& device_;
  ElementType x_type_, y_type_;
  bool has_gradient_, is_exclusive_;
  ScannedLines forward_, backward_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCumSum(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const CumSumShape shape, ReadCumSumShape(spec));
  switch (spec.input(0).type) {
    case ElementType::kInt32:
      return Prepared<CumSumOp<uint32_t, WrappedIn<int32_t>, WrappedOut<int32_t>>>(spec, device,
                                                                                   shape);
    case ElementType::kInt64:
      return Prepared<CumSumOp<uint64_t, WrappedIn<int64_t>, WrappedOut<int64_t>>>(spec, device,
                                                                                   shape);
    default:
      return Prepared<CumSumOp<float, FloatsIn, FloatsOut>>(spec, device, shape);
  }
}

constexpr OpRow kScanOps[] = {{"CumSum", PrepareCumSum}};

}  // namespace

std::span<const OpRow> ScanOps() { return kScanOps; }

}  // namespace ckplan::cuda
