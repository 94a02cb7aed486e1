// What the elementwise operators of one and of two operands share.
#pragma once

#include <algorithm>
#include <memory>

#include "lib/base/check.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/broadcast.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/binary.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::cuda {

// The base of the elementwise operators of one input; lib/executor/scalar/unary.h says what an
// operator is.
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
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
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
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }

 private:
  Device& device_;
  int64_t count_;
  ElementType x_type_;
};

// The base of the elementwise operators of two inputs, each broadcast to the output;
// lib/executor/scalar/binary.h says what an operator is.
inline constexpr std::string_view kTooManyAxes =
    "its operands are broadcast in a way that leaves more than 8 axes";

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
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
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

// The gradient of one element as a summand; the offsets are those of a, b and y.
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
