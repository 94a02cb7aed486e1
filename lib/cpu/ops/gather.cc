// Gather, GatherND and ScatterND: rows that are named by indices.
#include <algorithm>

#include "lib/cpu/families.h"
#include "lib/cpu/ops/row_index.h"
#include "lib/cpu/ops/scatter_reduction.h"
#include "lib/ops/axes.h"

namespace ckplan::cpu {

namespace {

// y[o, i] = x[o, row(i)].
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
  GatherOp(const OpSpec& spec, RowIndex index, int64_t outer)
      : index_(std::move(index)),
        outer_(outer),
        inner_(spec.input(0).elements() / std::max<int64_t>(1, outer * index_.rows())),
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
    ForOwnedRows(outer_, rows, inner_, [&](int64_t outer, int64_t begin, int64_t end) {
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
  const Dims& dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), dims.size()));
  RowIndex index(spec.input(1).type, {dims[axis]}, spec.input(1).elements(), true);
  return std::unique_ptr<PreparedOp>(
      std::make_unique<GatherOp>(spec, std::move(index), ViewAlong(dims, axis).outer));
}

// The members of a tuple index the dimensions from `begin` on.
Result<Dims> TupleDims(const OpSpec& spec, size_t begin) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  const size_t tuple = indices.empty() ? 0 : static_cast<size_t>(indices.back());
  if (indices.size() <= begin || begin + tuple > data.size()) {
    return Unsupported(spec, "its tuples of indices are longer than its data has axes");
  }
  const auto first = data.begin() + static_cast<std::ptrdiff_t>(begin);
  return Dims(first, first + static_cast<std::ptrdiff_t>(tuple));
}

Result<std::unique_ptr<PreparedOp>> PrepareGatherND(const OpSpec& spec) {
  const auto batch = static_cast<size_t>(spec.Int("batch_dims", 0));
  CKPLAN_ASSIGN_OR_RETURN(const Dims indexed, TupleDims(spec, batch));
  const Dims& indices = spec.input(1).dims;
  int64_t outer = 1, count = 1;
  for (size_t i = 0; i + 1 < indices.size(); ++i) (i < batch ? outer : count) *= indices[i];
  RowIndex index(spec.input(1).type, indexed, count, false);
  return std::unique_ptr<PreparedOp>(std::make_unique<GatherOp>(spec, std::move(index), outer));
}

// Of equal indices, the last one is written; with a reduction they are combined in their order.
template <typename T, typename Reduction>
class ScatterNdOp final : public PreparedOp {
 public:
  ScatterNdOp(const OpSpec& spec, RowIndex index)
      : index_(std::move(index)),
        inner_(spec.input(0).elements() / std::max<int64_t>(1, index_.rows())),
        bytes_(spec.input(0).bytes()) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    const auto* updates = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    ForOwnedRows(1, index_.rows(), inner_, [&](int64_t, int64_t begin, int64_t end) {
      std::copy(x + begin * inner_, x + end * inner_, y + begin * inner_);
      ForNamedRows(call.inputs[1], begin, end, [&](int64_t row, int64_t i) {
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
    ForOwnedRows(1, index_.rows(), inner_, [&](int64_t, int64_t begin, int64_t end) {
      ForNamedRows(call.inputs[1], begin, end,
                   [&](int64_t row, int64_t) { std::fill_n(dx + row * inner_, inner_, 0.0F); });
    });
  }

 private:
  template <typename Body>
  void ForNamedRows(const void* indices, int64_t begin, int64_t end, const Body& body) const {
    for (int64_t i = 0; i < index_.count(); ++i) {
      const int64_t row = index_.RowOf(indices, 0, i);
      if (row >= begin && row < end) body(row, i);
    }
  }

  RowIndex index_;
  int64_t inner_, bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareScatterND(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const Dims indexed, TupleDims(spec, 0));
  const int64_t tuple = std::max<int64_t>(1, static_cast<int64_t>(indexed.size()));
  const RowIndex index(spec.input(1).type, indexed, spec.input(1).elements() / tuple, true);
  return WithScatterReduction(spec, [&](auto zero, auto kind) -> std::unique_ptr<PreparedOp> {
    return std::make_unique<ScatterNdOp<decltype(zero), decltype(kind)>>(spec, index);
  });
}

constexpr OpRow kRows[] = {
    {"Gather", PrepareGather},
    {"GatherND", PrepareGatherND},
    {"ScatterND", PrepareScatterND, true, "no gradient of reductions other than none and add"},
};

}  // namespace

std::span<const OpRow> GatherOps() { return kRows; }

}  // namespace ckplan::cpu
