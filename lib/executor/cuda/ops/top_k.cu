// TopK: the largest or smallest elements of each line, sorted, and their indices.
//
// There are two algorithms, and neither needs a workspace. By rank, each element counts the
// elements that come before it, and its rank is its position in the output. In turns, a team
// repeatedly finds the next element of its line.
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cuda {

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
