// Gather, GatherND and ScatterND: rows selected by indices.
#include "lib/problem/ops/gather.h"

#include <algorithm>
#include <type_traits>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/executor/scalar/integers.h"

namespace ckplan::cpu {

namespace {

// How Scatter operators combine an update with the existing value.
struct ScatterSet {
  template <typename T>
  static T Combine(T, T update) {
    return update;
  }
};

struct ScatterAdd {
  template <typename T>
  static T Combine(T old, T update) {
    if constexpr (std::is_same_v<T, float>) return old + update;
    if constexpr (!std::is_same_v<T, float>) return scalar::WrapAdd(old, update);
  }
};

struct ScatterMul {
  template <typename T>
  static T Combine(T old, T update) {
    if constexpr (std::is_same_v<T, float>) return old * update;
    if constexpr (!std::is_same_v<T, float>) return scalar::WrapMul(old, update);
  }
};

struct ScatterMax {
  template <typename T>
  static T Combine(T old, T update) {
    return std::max(old, update);
  }
};

struct ScatterMin {
  template <typename T>
  static T Combine(T old, T update) {
    return std::min(old, update);
  }
};

// Calls body with the element type T and the reduction that the spec names.
template <typename Body>
Result<std::unique_ptr<PreparedOp>> WithScatterReduction(const OpSpec& spec, const Body& body) {
  CKPLAN_ASSIGN_OR_RETURN(const Scattering scattering, ReadScattering(spec));
  std::unique_ptr<PreparedOp> op;
  const auto with_type = [&](auto kind) {
    if (spec.input(0).type == ElementType::kFloat32) op = body(0.0F, kind);
    if (spec.input(0).type == ElementType::kInt32) op = body(int32_t{}, kind);
    if (spec.input(0).type == ElementType::kInt64) op = body(int64_t{}, kind);
  };
  switch (scattering) {
    case Scattering::kSet:
      WithElementOf(SizeOf(spec.input(0).type), [&](auto zero) { op = body(zero, ScatterSet()); });
      break;
    case Scattering::kAdd:
      with_type(ScatterAdd());
      break;
    case Scattering::kMul:
      with_type(ScatterMul());
      break;
    case Scattering::kMax:
      with_type(ScatterMax());
      break;
    case Scattering::kMin:
      with_type(ScatterMin());
      break;
  }
  return op;
}

// Maps each index, or tuple of indices, to a row of the data; see lib/problem/ops/gather.h.
class RowIndex {
 public:
  RowIndex() = default;
  // `type` is the element type of the indices.
  RowIndex(ElementType type, const GatherShape& shape)
      : is_long_(type == ElementType::kInt64),
        is_shared_(shape.is_shared),
        count_(shape.count),
        dims_(shape.indexed),
        strides_(RowMajorStrides(dims_)) {}

  int64_t rows() const { return Product(dims_); }
  int64_t count() const { return count_; }

  // Negative indices count from the end. Returns -1 if one is out of range; such an index reads
  // zeros and writes nothing.
  int64_t RowOf(const void* indices, int64_t outer, int64_t i) const {
    const int64_t first =
        ((is_shared_ ? 0 : outer * count_) + i) * static_cast<int64_t>(dims_.size());
    int64_t row = 0;
    for (size_t k = 0; k < dims_.size(); ++k) {
      int64_t at = Read(indices, first + static_cast<int64_t>(k));
      if (at < 0) at += dims_[k];
      if (at < 0 || at >= dims_[k]) return -1;
      row += at * strides_[k];
    }
    return row;
  }

 private:
  int64_t Read(const void* indices, int64_t i) const {
    return is_long_ ? static_cast<const int64_t*>(indices)[i]
                    : static_cast<const int32_t*>(indices)[i];
  }

  bool is_long_ = true, is_shared_ = true;
  int64_t count_ = 0;
  Dims dims_, strides_;
};

// Calls body(outer, begin, end) for disjoint ranges that cover all rows. One thread handles each
// range, so sums into a row are added in index order.
template <typename Body>
void ForRowRanges(int64_t outer, int64_t rows, int64_t inner, const Body& body) {
  constexpr int64_t kMaxOwners = 16;
  const bool is_small = rows * inner < kGrain;
  const int64_t owners = outer >= kMaxOwners || is_small ? 1
                         : rows < kMaxOwners             ? rows
                                                         : kMaxOwners;
  const int64_t work = rows * inner / owners + 1;
  const int64_t grain = work >= kGrain ? 1 : kGrain / work;
  ParallelFor(outer * owners, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t owner = task % owners;
      body(task / owners, rows * owner / owners, rows * (owner + 1) / owners);
    }
  });
}

// Computes y[o, i] = x[o, row(i)].
template <typename T>
void GatherRows(const RowIndex& index, int64_t outer, int64_t inner, const void* indices,
                const void* from, void* to) {
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  const int64_t rows = index.rows();
  const int64_t count = index.count();
  if (inner == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / inner);
  ParallelFor(outer * count, grain, [=, &index](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = index.RowOf(indices, i / count, i % count);
      const int64_t source = (i / count * rows + row) * inner;
      if (inner == 1) {
        y[i] = row < 0 ? T{0} : x[source];
      } else if (row < 0) {
        std::fill_n(y + i * inner, inner, T{0});
      } else {
        std::copy_n(x + source, inner, y + i * inner);
      }
    }
  });
}

class GatherOp final : public PreparedOp {
 public:
  GatherOp(const OpSpec& spec, const GatherShape& shape)
      : index_(spec.input(1).type, shape),
        outer_(shape.outer),
        inner_(shape.inner),
        element_bytes_(SizeOf(spec.input(0).type)) {}

  void Forward(const ForwardCall& call) override {
    WithElementOf(element_bytes_, [&](auto zero) {
      GatherRows<decltype(zero)>(index_, outer_, inner_, call.inputs[1], call.inputs[0],
                                 call.outputs[0]);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    const int64_t rows = index_.rows();
    ForRowRanges(outer_, rows, inner_, [&](int64_t outer, int64_t begin, int64_t end) {
      float* to = dx + outer * rows * inner_;
      std::fill(to + begin * inner_, to + end * inner_, 0.0F);
      for (int64_t i = 0; i < index_.count(); ++i) {
        const int64_t row = index_.RowOf(call.inputs[1], outer, i);
        if (row < begin || row >= end) continue;
        const float* from = g + (outer * index_.count() + i) * inner_;
        for (int64_t k = 0; k < inner_; ++k) to[row * inner_ + k] += from[k];
      }
    });
  }

 private:
  RowIndex index_;
  int64_t outer_, inner_, element_bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareGather(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadGatherShape(spec));
  return Prepared<GatherOp>(spec, shape);
}

// The last of several updates with the same index wins; a reduction combines them in index order.
template <typename T, typename Reduction>
class ScatterNdOp final : public PreparedOp {
 public:
  ScatterNdOp(const OpSpec& spec, const GatherShape& shape)
      : index_(spec.input(1).type, shape), inner_(shape.inner), bytes_(spec.input(0).bytes()) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    const auto* updates = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    ForRowRanges(1, index_.rows(), inner_, [&](int64_t, int64_t begin, int64_t end) {
      std::copy(x + begin * inner_, x + end * inner_, y + begin * inner_);
      ForIndexedRows(call.inputs[1], begin, end, [&](int64_t row, int64_t i) {
        for (int64_t k = 0; k < inner_; ++k) {
          T& to = y[row * inner_ + k];
          to = Reduction::Combine(to, updates[i * inner_ + k]);
        }
      });
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    if (position == 2) {
      return GatherRows<float>(index_, 1, inner_, call.inputs[1], g, gradient);
    }
    auto* dx = static_cast<float*>(gradient);
    CopyBytes(dx, g, bytes_);
    if (!std::is_same_v<Reduction, ScatterSet>) return;
    ForRowRanges(1, index_.rows(), inner_, [&](int64_t, int64_t begin, int64_t end) {
      ForIndexedRows(call.inputs[1], begin, end,
                     [&](int64_t row, int64_t) { std::fill_n(dx + row * inner_, inner_, 0.0F); });
    });
  }

 private:
  template <typename Body>
  void ForIndexedRows(const void* indices, int64_t begin, int64_t end, const Body& body) const {
    for (int64_t i = 0; i < index_.count(); ++i) {
      const int64_t row = index_.RowOf(indices, 0, i);
      if (row >= begin && row < end) body(row, i);
    }
  }

  RowIndex index_;
  int64_t inner_, bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareScatterND(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadScatterNdShape(spec));
  return WithScatterReduction(spec, [&](auto zero, auto kind) -> std::unique_ptr<PreparedOp> {
    return std::make_unique<ScatterNdOp<decltype(zero), decltype(kind)>>(spec, shape);
  });
}

constexpr OpRow kGatherOps[] = {
    {"Gather", PrepareGather},
    {"GatherND", PrepareGather},
    {"ScatterND", PrepareScatterND},
};

}  // namespace

std::span<const OpRow> GatherOps() { return kGatherOps; }

// GatherElements and ScatterElements: each element has its own index along one axis.

namespace {

// Lines along the axis, in the index tensor and in the data. Lines are disjoint and each is
// processed by one thread, so sums into an element are added in index order.
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

  // Calls body(offset in the indices, offset in the data); the latter is -1 for an index out of
  // range.
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
  int64_t length_ = 0, size_ = 0;  // Indices per line, and data elements along the axis.
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
