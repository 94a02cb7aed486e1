// GatherElements and ScatterElements: each element has an index of its own along one axis.
#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/scatter_reduction.h"
#include "lib/problem/ops/gather.h"

namespace ckplan::cpu {

namespace {

// The lines along the axis, in the tensor of indices and in the data. Lines are disjoint, so each
// is processed by one thread, and sums into an element are added in the order of the indices.
class Lines {
 public:
  Lines(const OpSpec& spec, size_t axis) : is_long_(spec.input(1).type == ElementType::kInt64) {
    const Dims& data = spec.input(0).dims;
    Dims others = spec.input(1).dims;
    Dims index_strides = RowMajorStrides(others);
    Dims data_strides = RowMajorStrides(data);
    length_ = others[axis];
    size_ = data[axis];
    index_step_ = index_strides[axis];
    data_step_ = data_strides[axis];
    for (Dims* list : {&others, &index_strides, &data_strides}) {
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(axis));
    }
    lines_ = Collapse(others, {index_strides, data_strides});
  }

  // Calls body(offset among the indices, offset in the data); the latter is -1 where the index is
  // out of range.
  template <typename Body>
  void ForEach(const void* indices, const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 4 * length_));
    ParallelFor(lines_.count(), grain, [=, this](int64_t begin, int64_t end) {
      WalkRuns(lines_, begin, end, [&](const int64_t* at, int64_t count) {
        for (int64_t line = 0; line < count; ++line) {
          const int64_t first = at[0] + line * lines_.inner_stride(0);
          const int64_t base = at[1] + line * lines_.inner_stride(1);
          for (int64_t i = 0; i < length_; ++i) {
            const int64_t place = first + i * index_step_;
            const int64_t index = Read(indices, place);
            body(place, index < 0 ? -1 : base + index * data_step_);
          }
        }
      });
    });
  }

 private:
  int64_t Read(const void* indices, int64_t place) const {
    int64_t index = is_long_ ? static_cast<const int64_t*>(indices)[place]
                             : static_cast<const int32_t*>(indices)[place];
    if (index < 0) index += size_;
    return index >= 0 && index < size_ ? index : -1;
  }

  bool is_long_;
  int64_t length_ = 0, size_ = 0;  // Indices in a line, and elements of the data along the axis.
  int64_t index_step_ = 1, data_step_ = 1;
  Layout lines_;
};

// Computes to[place] = from[offset in the data].
template <typename T>
void GatherLines(const Lines& lines, const void* indices, const T* from, T* to) {
  lines.ForEach(indices,
                [from, to](int64_t place, int64_t at) { to[place] = at < 0 ? T{0} : from[at]; });
}

class GatherElementsOp final : public PreparedOp {
 public:
  GatherElementsOp(const OpSpec& spec, size_t axis)
      : lines_(spec, axis),
        element_bytes_(SizeOf(spec.input(0).type)),
        bytes_(spec.input(0).bytes()) {}

  void Forward(const ForwardCall& call) override {
    WithElementOf(element_bytes_, [&](auto zero) {
      using T = decltype(zero);
      GatherLines(lines_, call.inputs[1], static_cast<const T*>(call.inputs[0]),
                  static_cast<T*>(call.outputs[0]));
    });
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    ZeroBytes(dx, bytes_);
    lines_.ForEach(call.inputs[1], [g, dx](int64_t place, int64_t at) {
      if (at >= 0) dx[at] += g[place];
    });
  }

 private:
  Lines lines_;
  int64_t element_bytes_, bytes_;
};

template <typename T, typename Reduction>
class ScatterElementsOp final : public PreparedOp {
 public:
  ScatterElementsOp(const OpSpec& spec, size_t axis)
      : lines_(spec, axis), bytes_(spec.input(0).bytes()) {}

  void Forward(const ForwardCall& call) override {
    const auto* updates = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    CopyBytes(y, call.inputs[0], bytes_);
    lines_.ForEach(call.inputs[1], [updates, y](int64_t place, int64_t at) {
      if (at >= 0) y[at] = Reduction::Combine(y[at], updates[place]);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* to = static_cast<float*>(gradient);
    if (position == 2) return GatherLines(lines_, call.inputs[1], g, to);
    CopyBytes(to, g, bytes_);
    if (!std::is_same_v<Reduction, ScatterSet>) return;
    lines_.ForEach(call.inputs[1], [to](int64_t, int64_t at) {
      if (at >= 0) to[at] = 0;
    });
  }

 private:
  Lines lines_;
  int64_t bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareGatherElements(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, ReadElementAxis(spec));
  return Prepared<GatherElementsOp>(spec, axis);
}

Result<std::unique_ptr<PreparedOp>> PrepareScatterElements(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, ReadElementAxis(spec));
  return WithScatterReduction(spec, [&](auto zero, auto kind) -> std::unique_ptr<PreparedOp> {
    return std::make_unique<ScatterElementsOp<decltype(zero), decltype(kind)>>(spec, axis);
  });
}

constexpr OpRow kElementOps[] = {
    {"GatherElements", PrepareGatherElements},
    {"ScatterElements", PrepareScatterElements},
    {"Scatter", PrepareScatterElements},
};

}  // namespace

std::span<const OpRow> ElementOps() { return kElementOps; }

}  // namespace ckplan::cpu
