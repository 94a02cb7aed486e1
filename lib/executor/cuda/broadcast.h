// Elementwise work on operands that are broadcast to the result's shape, and the sums that reduce
// gradients to the operands' shapes.
//
// Along the inner axis of a layout the stride of an operand is 1 (it "moves" with the result) or 0
// (it stays constant). If that axis is a multiple of kVector, or the only axis, a thread processes
// kVector elements at once: operands that move are read by one wide access, constant ones are read
// once for the whole group.
#pragma once

#include <vector>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/reduce.h"

namespace ckplan::cuda {

// Maps the elements of a result to those of its operands, in steps of one element or of a group of
// kVector elements. The layout is made by BroadcastLayout, whose last operand is the result.
template <int kInputs>
class BroadcastWalk {
 public:
  using Offsets = typename DeviceLayout<kInputs>::Offsets;

  BroadcastWalk() = default;
  // Walks at most kInputs operands of the layout, beginning with the first.
  explicit BroadcastWalk(const Layout& layout) : count_(layout.count()) {
    const bool is_one_run = layout.dims.size() == 1;
    is_grouped_ = is_one_run || layout.inner() % kVector == 0;
    const size_t inputs = std::min<size_t>(kInputs, layout.strides.size() - 1);
    Layout steps{layout.dims, {layout.strides.begin(), layout.strides.end() - 1}};
    steps.strides.resize(kInputs, Dims(layout.dims.size(), 0));
    for (size_t k = 0; k < inputs; ++k) moves_[k] = layout.inner_stride(k) != 0;
    if (is_grouped_) ToGroups(steps);
    steps_ = steps.count();
    layout_ = DeviceLayout<kInputs>(steps);
  }

  CKPLAN_DEVICE bool is_grouped() const { return is_grouped_; }
  CKPLAN_DEVICE int64_t count() const { return count_; }
  // Returns the number of elements or groups, which is the number of threads needed.
  CKPLAN_DEVICE int64_t steps() const { return steps_; }
  // Returns the offsets of the operands at this step: in groups for operands that move, if steps
  // are groups; otherwise in elements.
  CKPLAN_DEVICE Offsets Find(int64_t step) const { return layout_.Find(step); }
  CKPLAN_DEVICE int64_t FindOne(int operand, int64_t step) const {
    return layout_.FindOne(operand, step);
  }
  // Returns whether the operand's stride along the inner axis is not 0.
  CKPLAN_DEVICE bool moves(int operand) const { return moves_[operand]; }
  CKPLAN_DEVICE bool IsWholeGroup(int64_t step) const {
    return is_grouped_ && (step + 1) * kVector <= count_;
  }

  // Returns the group of an operand at the offset returned by Find.
  CKPLAN_DEVICE Float4 Load(const FloatsIn& in, int operand, int64_t offset) const {
    if (moves_[operand]) return in.Load(offset);
    const float same = in[offset];
    return Float4{{same, same, same, same}};
  }
  // Returns the offset of the k-th element of the last group, if that has fewer than kVector
  // elements. In that case the layout is a single run.
  CKPLAN_DEVICE int64_t Tail(int operand, int64_t offset, int64_t k) const {
    return moves_[operand] ? offset * kVector + k : offset;
  }

 private:
  void ToGroups(Layout& steps) const {
    steps.dims.back() = CeilDiv(steps.dims.back(), kVector);
    for (size_t k = 0; k < kInputs; ++k) {
      if (!moves_[k]) continue;
      Dims& strides = steps.strides[k];
      for (size_t axis = 0; axis + 1 < strides.size(); ++axis) strides[axis] /= kVector;
    }
  }

  int64_t count_ = 0;
  int64_t steps_ = 0;
  bool is_grouped_ = false;
  bool moves_[kInputs] = {};
  DeviceLayout<kInputs> layout_;
};

namespace detail {

// The work of one thread of MapBroadcast.
template <int kInputs, typename F>
struct BroadcastMap {
  BroadcastWalk<kInputs> walk;
  FloatsIn in[kInputs];
  FloatsOut out;
  F f;

  CKPLAN_DEVICE void operator()(int64_t step) const {
    const auto at = walk.Find(step);
    if (walk.IsWholeGroup(step)) {
      MapGroup(step, at);
    } else if (!walk.is_grouped()) {
      float x[kInputs] = {};
      for (int k = 0; k < kInputs; ++k) {
        if (F::Reads(k)) x[k] = in[k][at[k]];
      }
      out.Set(step, f(x));
    } else {
      for (int64_t i = step * kVector; i < walk.count(); ++i) {
        float x[kInputs] = {};
        for (int k = 0; k < kInputs; ++k) {
          if (F::Reads(k)) x[k] = in[k][walk.Tail(k, at[k], i - step * kVector)];
        }
        out.Set(i, f(x));
      }
    }
  }

  CKPLAN_DEVICE void MapGroup(int64_t step,
                              const typename BroadcastWalk<kInputs>::Offsets& at) const {
    Float4 groups[kInputs] = {};
    for (int k = 0; k < kInputs; ++k) {
      if (F::Reads(k)) groups[k] = walk.Load(in[k], k, at[k]);
    }
    Float4 results;
    for (int lane = 0; lane < kVector; ++lane) {
      float x[kInputs] = {};
      for (int k = 0; k < kInputs; ++k) x[k] = groups[k].at[lane];
      results.at[lane] = f(x);
    }
    out.Store(step, results);
  }
};

}  // namespace detail

// Computes out[i] = f(x) for each element, where x[k] is the element of operand k. The constexpr
// F::Reads(k) says whether f reads operand k; operands that are not read may be null. `out` may
// alias an operand of equal size and type.
template <int kInputs, typename F>
void MapBroadcast(Device& device, const BroadcastWalk<kInputs>& walk, const FloatsOut& out,
                  const F& f, const FloatsIn (&in)[kInputs]) {
  detail::BroadcastMap<kInputs, F> map{walk, {}, out, f};
  for (int k = 0; k < kInputs; ++k) map.in[k] = in[k];
  ForEach(device, walk.steps(), map);
}

namespace detail {

// The summand of BroadcastSum. F is a functor: float operator()(offsets).
template <int kOperands, typename F>
struct SumMap {
  DeviceLayout<kOperands> kept, reduced;
  F f;
  CKPLAN_DEVICE float operator()(int64_t result, int64_t i) const {
    auto at = kept.Find(result);
    const auto inside = reduced.Find(i);
    for (int k = 0; k < kOperands; ++k) at.at[k] += inside.at[k];
    return f(at);
  }
};

struct StoreSum {
  FloatsOut out;
  CKPLAN_DEVICE void operator()(int64_t result, float sum) const { out.Set(result, sum); }
};

template <typename Map>
struct SumRow {
  Map map;
  FloatsOut out;
  int64_t length;
  CKPLAN_KERNEL void operator()(Team& team, int64_t row) const {
    const float sum = team.Sum(length, RowOf{map, row});
    if (team.IsFirst()) out.Set(row, sum);
  }
  struct RowOf {
    const Map& map;
    int64_t row;
    CKPLAN_DEVICE float operator()(int64_t i) const { return map(row, i); }
  };
};

}  // namespace detail

// Sums values in the shape of a result to the shape of one operand that is broadcast to it.
template <int kOperands>
class BroadcastSum {
 public:
  using Offsets = typename DeviceLayout<kOperands>::Offsets;

  BroadcastSum() = default;
  // `target` is the operand of the layout whose shape the sums have. Walks all kOperands operands.
  BroadcastSum(const Layout& layout, size_t target) {
    const Dims& own = layout.strides[target];
    kept_ = DeviceLayout<kOperands>(Part(layout, own, true));
    reduced_ = DeviceLayout<kOperands>(Part(layout, own, false));
    shape_ = ReduceShape::Of(kept_.count(), reduced_.count(), own.back() != 0);
    // Teams read rows, so that neighbouring threads read neighbouring elements. Long rows, if there
    // are few, are divided into parts; rows of a few elements are not worth a team.
    constexpr int64_t kFewElements = 16;
    is_by_rows_ = own.back() == 0 && shape_.parts == 1 && shape_.length > kFewElements;
  }

  int64_t workspace() const { return is_by_rows_ ? 0 : shape_.template workspace<float>(); }

  // Computes out[r] = Σ f(offsets of the operands) over all elements to which element r of the
  // target is broadcast.
  template <typename F>
  void Run(Device& device, const FloatsOut& out, const F& f, void* workspace) const {
    const detail::SumMap<kOperands, F> map{kept_, reduced_, f};
    if (is_by_rows_) {
      using Body = detail::SumRow<detail::SumMap<kOperands, F>>;
      ForRows(device, shape_.results, shape_.length, Body{map, out, shape_.length});
    } else {
      Reduce(device, shape_, 0.0F, map, SumOf(), detail::StoreSum{out}, workspace);
    }
  }

 private:
  // Returns the axes along which the target moves, or those along which the target is constant.
  static Layout Part(const Layout& layout, const Dims& own, bool moves) {
    Dims dims;
    std::vector<Dims> strides(layout.strides.size());
    for (size_t axis = 0; axis < layout.dims.size(); ++axis) {
      if ((own[axis] != 0) != moves) continue;
      dims.push_back(layout.dims[axis]);
      for (size_t k = 0; k < strides.size(); ++k) strides[k].push_back(layout.strides[k][axis]);
    }
    return Collapse(dims, strides);
  }

  DeviceLayout<kOperands> kept_, reduced_;
  ReduceShape shape_;
  bool is_by_rows_ = false;
};

}  // namespace ckplan::cuda
