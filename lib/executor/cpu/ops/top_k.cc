// TopK: the largest or smallest elements of each line, sorted, and their indices.
#include <algorithm>
#include <numeric>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cpu {

namespace {

// Lines are sorted through a list of indices. The lines are divided into at most this many groups,
// each with a list of its own.
constexpr int64_t kMaxGroups = 16;

// The indices go to the operator's second output or, if that is unused, to the statistic.
template <typename T>
class TopKOp final : public PreparedOp {
 public:
  explicit TopKOp(const TopKShape& shape)
      : view_(shape.view),
        chosen_(shape.chosen),
        lines_(shape.lines()),
        groups_(std::min(kMaxGroups, lines_)),
        has_statistic_(shape.has_statistic),
        is_largest_(shape.is_largest) {}
  OpWorkspace workspace() const override {
    return {groups_ * view_.size * static_cast<int64_t>(sizeof(int64_t)), 0};
  }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* values = static_cast<T*>(call.outputs[0]);
    void* list = has_statistic_            ? call.statistic
                 : call.outputs.size() > 1 ? call.outputs[1]
                                           : nullptr;
    ParallelFor(groups_, 1, [=, this](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        int64_t* order = static_cast<int64_t*>(call.workspace) + group * view_.size;
        const int64_t last = lines_ * (group + 1) / groups_;
        for (int64_t line = lines_ * group / groups_; line < last; ++line) {
          Choose(line, x, order, values, static_cast<int64_t*>(list));
        }
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    const auto* list =
        static_cast<const int64_t*>(has_statistic_ ? call.statistic : call.outputs[1]);
    auto* dx = static_cast<float*>(gradient);
    ZeroBytes(dx, lines_ * view_.size * 4);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, chosen_));
    ParallelFor(lines_, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        for (int64_t k = 0; k < chosen_; ++k) {
          const int64_t from = First(line, chosen_) + k * view_.inner;
          dx[First(line, view_.size) + list[from] * view_.inner] = g[from];
        }
      }
    });
  }

 private:
  int64_t First(int64_t line, int64_t size) const {
    return line / view_.inner * size * view_.inner + line % view_.inner;
  }

  void Choose(int64_t line, const T* x, int64_t* order, T* values, int64_t* list) const {
    const T* row = x + First(line, view_.size);
    std::iota(order, order + view_.size, int64_t{0});
    std::partial_sort(order, order + chosen_, order + view_.size, [&](int64_t a, int64_t b) {
      const T left = row[a * view_.inner];
      const T right = row[b * view_.inner];
      if (left != right) return is_largest_ ? left > right : left < right;
      return a < b;
    });
    for (int64_t k = 0; k < chosen_; ++k) {
      const int64_t to = First(line, chosen_) + k * view_.inner;
      if (values != nullptr) values[to] = row[order[k] * view_.inner];
      if (list != nullptr) list[to] = order[k];
    }
  }

  AxisView view_;
  int64_t chosen_, lines_, groups_;
  bool has_statistic_, is_largest_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTopK(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const TopKShape shape, ReadTopKShape(spec));
  if (spec.input(0).type == ElementType::kInt32) return Prepared<TopKOp<int32_t>>(shape);
  if (spec.input(0).type == ElementType::kInt64) return Prepared<TopKOp<int64_t>>(shape);
  return Prepared<TopKOp<float>>(shape);
}

constexpr OpRow kTopKOps[] = {{"TopK", PrepareTopK}};

}  // namespace

std::span<const OpRow> TopKOps() { return kTopKOps; }

}  // namespace ckplan::cpu
