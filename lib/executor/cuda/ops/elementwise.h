// Code shared by elementwise operators with one and two operands: broadcasting, and the kernels for
// values and gradients.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/binary.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::cuda {

// Elementwise work on operands broadcast to the result's shape, and the sums that reduce gradients
// to the operands' shapes.
//
// Along a layout's inner axis, an operand's stride is 1 (it "moves" with the result) or 0 (it stays
// constant). If that axis is a multiple of kVector, or the only axis, a thread processes kVector
// elements at once: moving operands are read in one wide access, and constant ones once per group.

// Maps a result's elements to those of its operands, in steps of one element or a group of kVector
// elements. BroadcastLayout creates the layout, whose last operand is the result.
template <int kInputs>
class BroadcastWalk {
 public:
  using Offsets = typename DeviceLayout<kInputs>::Offsets;

  BroadcastWalk() = default;
  // Walks the layout's first operands, at most kInputs.
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
  // Returns the number of elements or groups, and so of threads.
  CKPLAN_DEVICE int64_t steps() const { return steps_; }
  // Returns the operands' offsets at this step: in groups for moving operands if steps are groups,
  // otherwise in elements.
  CKPLAN_DEVICE Offsets Find(int64_t step) const { return layout_.Find(step); }
  CKPLAN_DEVICE int64_t FindOne(int operand, int64_t step) const {
    return layout_.FindOne(operand, step);
  }
  // True if the operand's stride along the inner axis is not 0.
  CKPLAN_DEVICE bool moves(int operand) const { return moves_[operand]; }
  CKPLAN_DEVICE bool IsWholeGroup(int64_t step) const {
    return is_grouped_ && (step + 1) * kVector <= count_;
  }

  // Returns an operand's group at the offset returned by Find.
  CKPLAN_DEVICE Float4 Load(const FloatsIn& in, int operand, int64_t offset) const {
    if (moves_[operand]) return in.Load(offset);
    const float same = in[offset];
    return Float4{{same, same, same, same}};
  }
  // Returns the offset of the k-th element of the last group, if that has fewer than kVector
  // elements. The layout is then a single run.
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

// The work of one MapBroadcast thread.
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
// F::Reads(k) says whether f reads operand k; unread operands may be null. `out` may alias an
// operand of the same size and type.
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

// Sums values in a result's shape to the shape of one of its broadcast operands.
template <int kOperands>
class BroadcastSum {
 public:
  using Offsets = typename DeviceLayout<kOperands>::Offsets;

  BroadcastSum() = default;
  // `target` is the layout's operand with the shape of the sums. Walks all kOperands operands.
  BroadcastSum(const Layout& layout, size_t target) {
    const Dims& own = layout.strides[target];
    kept_ = DeviceLayout<kOperands>(Part(layout, own, true));
    reduced_ = DeviceLayout<kOperands>(Part(layout, own, false));
    shape_ = ReduceShape::Of(kept_.count(), reduced_.count(), own.back() != 0);
    // Teams read rows, so that neighbouring threads read neighbouring elements. A few long rows are
    // divided into parts; rows of a few elements don't need a team.
    constexpr int64_t kFewElements = 16;
    is_by_rows_ = own.back() == 0 && shape_.parts == 1 && shape_.length > kFewElements;
  }

  int64_t workspace() const { return is_by_rows_ ? 0 : shape_.template workspace<float>(); }

  // Computes out[r] = Σ f(the operands' offsets) over all elements that the target's element r is
  // broadcast to.
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
  // Returns the axes along which the target moves, or those along which it is constant.
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

// Base class of elementwise operators with one input. lib/executor/scalar/unary.h defines Op.
template <typename Op>
struct ValueOf {
  Op op;
  CKPLAN_DEVICE float operator()(float x) const { return op.Value(x); }
};

template <typename Op>
struct SlopeTimes {
  Op op;
  CKPLAN_DEVICE float operator()(float gradient, float from) const {
    return gradient * op.Slope(from);
  }
};

template <typename Op>
class UnaryOp final : public PreparedOp {
 public:
  UnaryOp(const OpSpec& spec, Device& device, const Op& op)
      : device_(device),
        count_(spec.output(0).elements()),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        op_(op) {}

  void Forward(const ForwardCall& call) override {
    Map(device_, count_, FloatsOut(call.outputs[0], y_type_), ValueOf<Op>{op_},
        FloatsIn(call.inputs[0], x_type_));
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsIn from = Op::kReads == scalar::Reads::kInput ? FloatsIn(call.inputs[0], x_type_)
                          : Op::kReads == scalar::Reads::kOutput
                              ? FloatsIn(call.outputs[0], y_type_)
                              : g;
    Map(device_, count_, FloatsOut(gradient, x_type_), SlopeTimes<Op>{op_}, g, from);
  }

 private:
  Device& device_;
  int64_t count_;
  ElementType x_type_, y_type_;
  Op op_;
};

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareUnary(const OpSpec& spec, Device& device) {
  return Prepared<UnaryOp<Op>>(spec, device, Op(spec));
}

// Operators for any element type, without a gradient. F::Value(x) is a template.
template <typename From, typename To, typename F>
class MapOp final : public PreparedOp {
 public:
  MapOp(const OpSpec& spec, Device& device) : device_(device), count_(spec.output(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const From*>(call.inputs[0]);
    auto* y = static_cast<To*>(call.outputs[0]);
    ForEach(device_, count_,
            [=] CKPLAN_KERNEL(int64_t i) { y[i] = static_cast<To>(F::Value(x[i])); });
  }

 private:
  Device& device_;
  int64_t count_;
};

// Operators from floats, stored as float32 or bfloat16, to another type.
template <typename To, typename F>
class FloatMapOp final : public PreparedOp {
 public:
  FloatMapOp(const OpSpec& spec, Device& device)
      : device_(device), count_(spec.output(0).elements()), x_type_(spec.input(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    auto* y = static_cast<To*>(call.outputs[0]);
    ForEach(device_, count_,
            [=] CKPLAN_KERNEL(int64_t i) { y[i] = static_cast<To>(F::Value(x[i])); });
  }

 private:
  Device& device_;
  int64_t count_;
  ElementType x_type_;
};

// Base class of elementwise operators with two inputs, each broadcast to the output.
// lib/executor/scalar/binary.h defines Op.
inline constexpr std::string_view kTooManyAxes = "its operands' broadcast needs more than 8 axes";

inline Layout BinaryLayout(const OpSpec& spec) {
  return BroadcastLayout(spec.output(0).dims, {spec.input(0).dims, spec.input(1).dims});
}

// A binary operator on any element types, without a gradient.
template <typename T, typename R, typename Op>
class BinaryMap final : public PreparedOp {
 public:
  BinaryMap(const OpSpec& spec, Device& device)
      : device_(device),
        a_type_(spec.input(0).type),
        b_type_(spec.input(1).type),
        layout_(BinaryLayout(spec)) {}

  void Forward(const ForwardCall& call) override {
    const Reader<T> a(call.inputs[0], a_type_);
    const Reader<T> b(call.inputs[1], b_type_);
    auto* y = static_cast<R*>(call.outputs[0]);
    const DeviceLayout<2> layout = layout_;
    ForEach(device_, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
      const auto at = layout.Find(i);
      const T first = a[at[0]];
      const T second = b[at[1]];
      y[i] = static_cast<R>(Op::Value(first, second));
    });
  }

 private:
  Device& device_;
  ElementType a_type_, b_type_;
  DeviceLayout<2> layout_;
};

template <typename Op>
struct BinaryValue {
  CKPLAN_DEVICE static constexpr bool Reads(int) { return true; }
  CKPLAN_DEVICE float operator()(const float* x) const { return Op::Value(x[0], x[1]); }
};

template <typename Op>
struct FirstSlope {
  static constexpr scalar::Partial kPartial = Op::kFirst;
  CKPLAN_DEVICE static float Slope(float a, float b, float y) { return Op::First(a, b, y); }
};
template <typename Op>
struct SecondSlope {
  static constexpr scalar::Partial kPartial = Op::kSecond;
  CKPLAN_DEVICE static float Slope(float a, float b, float y) { return Op::Second(a, b, y); }
};

// The gradient of one element, computed from a, b, y and the output's gradient.
template <typename S>
struct BinarySlope {
  CKPLAN_DEVICE static constexpr bool Reads(int operand) {
    return operand == 0   ? S::kPartial.reads_a
           : operand == 1 ? S::kPartial.reads_b
           : operand == 2 ? S::kPartial.reads_y
                          : true;
  }
  CKPLAN_DEVICE float operator()(const float* x) const { return x[3] * S::Slope(x[0], x[1], x[2]); }
};

// The gradient of one element as a summand. Offsets belong to a, b and y.
template <typename S>
struct BinaryTerm {
  FloatsIn a, b, y, g;
  CKPLAN_DEVICE float operator()(const DeviceLayout<3>::Offsets& at) const {
    float x[4] = {0, 0, 0, g[at[2]]};
    if (S::kPartial.reads_a) x[0] = a[at[0]];
    if (S::kPartial.reads_b) x[1] = b[at[1]];
    if (S::kPartial.reads_y) x[2] = y[at[2]];
    return BinarySlope<S>()(x);
  }
};

// A binary operator on floats.
template <typename Op>
class BinaryOp final : public PreparedOp {
 public:
  BinaryOp(const OpSpec& spec, Device& device)
      : device_(device),
        types_{spec.input(0).type, spec.input(1).type},
        y_type_(spec.output(0).type) {
    Layout layout = BinaryLayout(spec);
    for (const size_t input : {size_t{0}, size_t{1}}) {
      is_whole_[input] = spec.inputs[input].elements() == spec.output(0).elements();
      if (!is_whole_[input] && spec.inputs[input].has_gradient) {
        sums_[input] = BroadcastSum<3>(layout, input);
      }
    }
    walk_ = BroadcastWalk<2>(layout);
    const Dims result = layout.strides.back();
    layout.strides.insert(layout.strides.end(), 2, result);
    slope_walk_ = BroadcastWalk<4>(layout);
  }

  OpWorkspace workspace() const override {
    return {0, std::max(sums_[0].workspace(), sums_[1].workspace())};
  }

  void Forward(const ForwardCall& call) override {
    MapBroadcast(device_, walk_, FloatsOut(call.outputs[0], y_type_), BinaryValue<Op>(),
                 {FloatsIn(call.inputs[0], types_[0]), FloatsIn(call.inputs[1], types_[1])});
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsOut out(gradient, types_[position]);
    if (position == 0) {
      Backward<FirstSlope<Op>>(call, 0, out);
    } else {
      Backward<SecondSlope<Op>>(call, 1, out);
    }
  }

 private:
  template <typename S>
  void Backward(const BackwardCall& call, size_t position, const FloatsOut& out) {
    const FloatsIn a(call.inputs[0], types_[0]);
    const FloatsIn b(call.inputs[1], types_[1]);
    const FloatsIn y(call.outputs[0], y_type_);
    const FloatsIn g(call.output_gradients[0], y_type_);
    if (is_whole_[position]) {
      MapBroadcast(device_, slope_walk_, out, BinarySlope<S>(), {a, b, y, g});
    } else {
      sums_[position].Run(device_, out, BinaryTerm<S>{a, b, y, g}, call.workspace);
    }
  }

  Device& device_;
  ElementType types_[2];
  ElementType y_type_;
  bool is_whole_[2] = {};
  BroadcastWalk<2> walk_;
  BroadcastWalk<4> slope_walk_;
  BroadcastSum<3> sums_[2];
};

}  // namespace ckplan::cuda
