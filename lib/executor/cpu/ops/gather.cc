// Gather, GatherND and ScatterND: rows selected by indices.
#include "lib/problem/ops/gather.h"

#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/row_index.h"
#include "lib/executor/cpu/ops/scatter_reduction.h"

namespace ckplan::cpu {

namespace {

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
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadGatherShape(spec));
  return Prepared<GatherOp>(spec, shape);
}

// If indices repeat, the last update is written; a reduction combines the updates in index order.
template <typename T, typename Reduction>
class ScatterNdOp final : public PreparedOp {
 public:
  ScatterNdOp(const OpSpec& spec, const GatherShape& shape)
      : index_(spec.input(1).type, shape), inner_(shape.inner), bytes_(spec.input(0).bytes()) {}

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

}  // namespace ckplan::cpu
