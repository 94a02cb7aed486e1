// The base of the elementwise operators of one input; lib/executor/scalar/unary.h says what an
// operator is.
#pragma once

#include <memory>

#include "lib/base/check.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::cuda {

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

}  // namespace ckplan::cuda
