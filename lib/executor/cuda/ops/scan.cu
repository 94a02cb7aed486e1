// Operators along one axis: cumulative sums, and positions of maxima and minima.
#include <type_traits>

#include "lib/base/check.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/lines.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cuda {

namespace {

// ---- CumSum -------------------------------------------------------------------------------------

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

// ---- ArgMax, ArgMin, Hardmax --------------------------------------------------------------------

template <typename T>
struct FoundElement {
  T value;
  int64_t index;  // -1 if nothing was found yet.
};

// Returns the result of a sequential search that starts with the first element and replaces it by
// each element that compares as better. So a NaN is found only if it is the first element: NaN
// never compares as better, and nothing compares as better than NaN.
template <typename T>
struct Better {
  bool is_max, takes_last;
  CKPLAN_DEVICE FoundElement<T> Begin(T value, int64_t index) const {
    return {value, value != value && index != 0 ? -1 : index};
  }
  CKPLAN_DEVICE FoundElement<T> operator()(const FoundElement<T>& a,
                                           const FoundElement<T>& b) const {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    if (a.value != a.value) return a;
    if (b.value != b.value) return b;
    if (a.value == b.value) return (a.index < b.index) != takes_last ? a : b;
    return (a.value > b.value) == is_max ? a : b;
  }
};

// Access to the elements, with the type that `FoundElement` holds.
struct FloatElements {
  using Value = float;
  FloatsIn x;
  CKPLAN_DEVICE float operator[](int64_t i) const { return x[i]; }
};
template <typename T>
struct IntegerElements {
  using Value = T;
  const T* x;
  CKPLAN_DEVICE T operator[](int64_t i) const { return x[i]; }
};

template <typename T, typename Elements, typename B>
CKPLAN_KERNEL int64_t IndexOfBest(const T& team, const Line& line, int64_t size, const Elements& x,
                                  const B& better) {
  using Value = typename Elements::Value;
  return team
      .Reduce(
          size, FoundElement<Value>{Value{0}, -1},
          [&](int64_t i) { return better.Begin(x[line[i]], i); }, better)
      .index;
}

template <typename Elements>
struct ArgLine {
  int64_t size;
  Elements x;
  Better<typename Elements::Value> better;
  int64_t* y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const int64_t best = IndexOfBest(team, line, size, x, better);
    if (team.IsFirst()) y[line.index] = Max(best, 0);
  }
};

struct HardmaxLine {
  int64_t size;
  FloatElements x;
  FloatsOut y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const int64_t best = IndexOfBest(team, line, size, x, Better<float>{true, false});
    team.ForEach(size, [&](int64_t i) { y.Set(line[i], i == best ? 1.0F : 0.0F); });
  }
};

class ArgExtremeOp final : public OpWithoutGradient {
 public:
  ArgExtremeOp(const OpSpec& spec, Device& device, const ArgShape& shape)
      : device_(device),
        view_(shape.view),
        type_(spec.input(0).type),
        is_max_(shape.is_max),
        takes_last_(shape.takes_last) {}

  void Forward(const ForwardCall& call) override {
    if (type_ == ElementType::kInt32) {
      Run(call, IntegerElements<int32_t>{static_cast<const int32_t*>(call.inputs[0])});
    } else if (type_ == ElementType::kInt64) {
      Run(call, IntegerElements<int64_t>{static_cast<const int64_t*>(call.inputs[0])});
    } else {
      Run(call, FloatElements{FloatsIn(call.inputs[0], type_)});
    }
  }

 private:
  template <typename Elements>
  void Run(const ForwardCall& call, const Elements& x) {
    ForLines(device_, view_,
             ArgLine<Elements>{
                 view_.size, x, {is_max_, takes_last_}, static_cast<int64_t*>(call.outputs[0])});
  }

  Device& device_;
  AxisView view_;
  ElementType type_;
  bool is_max_, takes_last_;
};

class HardmaxOp final : public OpWithoutGradient {
 public:
  HardmaxOp(const OpSpec& spec, Device& device, const AxisView& view)
      : device_(device), view_(view), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    ForLines(device_, view_,
             HardmaxLine{view_.size, FloatElements{FloatsIn(call.inputs[0], x_type_)},
                         FloatsOut(call.outputs[0], y_type_)});
  }

 private:
  Device& device_;
  AxisView view_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareArg(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ArgShape shape, ReadArgShape(spec));
  return Prepared<ArgExtremeOp>(spec, device, shape);
}

Result<std::unique_ptr<PreparedOp>> PrepareHardmax(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const AxisView view, ReadHardmaxShape(spec));
  return Prepared<HardmaxOp>(spec, device, view);
}

constexpr OpRow kScanOps[] = {
    {"ArgMax", PrepareArg},
    {"ArgMin", PrepareArg},
    {"CumSum", PrepareCumSum},
    {"Hardmax", PrepareHardmax},
};

}  // namespace

std::span<const OpRow> ScanOps() { return kScanOps; }

// TopK: the largest or smallest elements of each line, sorted, and their indices.
//
// There are two algorithms, and neither needs a workspace. By rank, each element counts the
// elements that come before it, and its rank is its position in the output. In turns, a team
// repeatedly finds the next element of its line.

namespace {

// The rank algorithm costs elements^2, divided among all threads; turns cost elements * chosen,
// divided among the threads of one team.
bool IsByRank(int64_t elements, int64_t chosen) {
  constexpr int64_t kFew = 1024;
  constexpr int64_t kWorthATurn = 64;
  return elements <= kFew || elements <= kWorthATurn * chosen;
}

// The lines along the axis.
struct SortedLines {
  Divider inner;
  int64_t size, chosen;
  CKPLAN_DEVICE int64_t First(int64_t line, int64_t length) const {
    int64_t inside = line;
    const int64_t outer = inner.Split(inside);
    return outer * length * inner.divisor() + inside;
  }
};

// An element of a line; a negative `index` means none.
template <typename T>
struct Candidate {
  T value;
  int64_t index;
};

// A total order: equal elements are ordered by index, and NaN is larger than any number.
template <typename T>
struct Order {
  bool is_largest;
  CKPLAN_DEVICE bool IsBefore(const Candidate<T>& a, const Candidate<T>& b) const {
    const bool a_is_number = a.value == a.value;
    const bool b_is_number = b.value == b.value;
    if (a_is_number != b_is_number) return a_is_number != is_largest;
    if (a.value == b.value || !a_is_number) return a.index < b.index;
    return is_largest ? a.value > b.value : a.value < b.value;
  }
};
template <typename T>
struct EarlierOf {
  Order<T> order;
  CKPLAN_DEVICE Candidate<T> operator()(const Candidate<T>& a, const Candidate<T>& b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    return order.IsBefore(a, b) ? a : b;
  }
};

// The outputs for values and indices; either may be null.
template <typename T>
struct Chosen {
  Writer<T> values;
  int64_t* indices;
  CKPLAN_DEVICE void Set(int64_t at, const Candidate<T>& candidate) const {
    if (!values.is_null()) values.Set(at, candidate.value);
    if (indices != nullptr) indices[at] = candidate.index;
  }
};

// The rank algorithm, with one thread per element; neighbouring threads have neighbouring elements.
template <typename T>
struct PlaceByRank {
  SortedLines lines;
  Divider line_elements;  // Elements in a group of interleaved lines.
  Order<T> order;
  Reader<T> x;
  Chosen<T> to;
  CKPLAN_DEVICE void operator()(int64_t at) const {
    const int64_t inner = lines.inner.divisor();
    int64_t inside = at;
    const int64_t outer = line_elements.Split(inside);
    const int64_t index = lines.inner.Split(inside);  // Leaves the line in `inside`.
    const int64_t first = outer * line_elements.divisor() + inside;
    const Candidate<T> own{x[at], index};
    int64_t rank = 0;
    for (int64_t k = 0; k < lines.size && rank < lines.chosen; ++k) {
      const Candidate<T> other{x[first + k * inner], k};
      rank += order.IsBefore(other, own) ? 1 : 0;
    }
    if (rank < lines.chosen) to.Set((outer * lines.chosen + rank) * inner + inside, own);
  }
};

// The turns algorithm, with one team per line. Each turn finds the first element after `last`, the
// element of the previous turn.
template <typename T>
struct TakeTurns {
  SortedLines lines;
  Order<T> order;
  Reader<T> x;
  Chosen<T> to;
  CKPLAN_KERNEL void operator()(Team& team, int64_t line) const {
    const int64_t inner = lines.inner.divisor();
    const int64_t first = lines.First(line, lines.size);
    const int64_t first_chosen = lines.First(line, lines.chosen);
    const Candidate<T> none{T{0}, -1};
    Candidate<T> last = none;
    for (int64_t turn = 0; turn < lines.chosen; ++turn) {
      last = team.Reduce(
          lines.size, none,
          [&](int64_t k) {
            const Candidate<T> candidate{x[first + k * inner], k};
            return last.index < 0 || order.IsBefore(last, candidate) ? candidate : none;
          },
          EarlierOf<T>{order});
      if (team.IsFirst()) to.Set(first_chosen + turn * inner, last);
    }
  }
};

// The indices go to the operator's second output or, if that is unused, to the statistic.
template <typename T>
class TopKOp final : public PreparedOp {
 public:
  TopKOp(const OpSpec& spec, Device& device, const TopKShape& shape)
      : device_(device),
        elements_(spec.input(0).elements()),
        chosen_elements_(shape.lines() * shape.chosen),
        count_(shape.lines()),
        has_statistic_(shape.has_statistic),
        is_by_rank_(IsByRank(shape.view.size, shape.chosen)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        order_{shape.is_largest} {
    if (elements_ == 0) return;
    lines_ = {Divider(shape.view.inner), shape.view.size, shape.chosen};
    line_elements_ = Divider(shape.view.size * shape.view.inner);
  }

  void Forward(const ForwardCall& call) override {
    if (chosen_elements_ == 0) return;
    void* list = has_statistic_            ? call.statistic
                 : call.outputs.size() > 1 ? call.outputs[1]
                                           : nullptr;
    const Reader<T> x(call.inputs[0], x_type_);
    const Chosen<T> to{Writer<T>(call.outputs[0], y_type_), static_cast<int64_t*>(list)};
    if (is_by_rank_) {
      ForEach(device_, elements_, PlaceByRank<T>{lines_, line_elements_, order_, x, to});
    } else {
      ForRows(device_, count_, lines_.size, TakeTurns<T>{lines_, order_, x, to});
    }
  }

  // Each element of a line is chosen at most once, so threads never write to one place.
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    device_.Zero(gradient, elements_ * SizeOf(x_type_));
    if (chosen_elements_ == 0) return;
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const auto* list =
        static_cast<const int64_t*>(has_statistic_ ? call.statistic : call.outputs[1]);
    const SortedLines lines = lines_;
    const Divider chosen_of_lines(lines.chosen * lines.inner.divisor());
    ForEach(device_, chosen_elements_, [=] CKPLAN_KERNEL(int64_t at) {
      int64_t line = at;
      const int64_t outer = chosen_of_lines.Split(line);
      lines.inner.Split(line);
      dx.Set((outer * lines.size + list[at]) * lines.inner.divisor() + line, g[at]);
    });
  }

 private:
  Device& device_;
  int64_t elements_, chosen_elements_, count_;  // count_: number of lines.
  bool has_statistic_, is_by_rank_;
  ElementType x_type_, y_type_;
  Order<T> order_;
  SortedLines lines_{};
  Divider line_elements_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTopK(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const TopKShape shape, ReadTopKShape(spec));
  if (IsFloat(spec.input(0).type)) return Prepared<TopKOp<float>>(spec, device, shape);
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<TopKOp<int32_t>>(spec, device, shape);
  }
  return Prepared<TopKOp<int64_t>>(spec, device, shape);
}

constexpr OpRow kTopKOps[] = {{"TopK", PrepareTopK}};

}  // namespace

std::span<const OpRow> TopKOps() { return kTopKOps; }

}  // namespace ckplan::cuda
