// The base of the elementwise operators of one input; lib/executor/scalar/unary.h says what an
// operator is.
#pragma once

#include <memory>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::cpu {

template <typename Op>
class UnaryOp final : public PreparedOp {
 public:
  UnaryOp(const OpSpec& spec, const Op& op) : count_(spec.output(0).elements()), op_(op) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    ParallelFor(count_, kGrain, [x, y, this](int64_t begin, int64_t end) {
      const Op op = op_;
      for (int64_t i = begin; i < end; ++i) y[i] = op.Value(x[i]);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    const void* read = Op::kReads == scalar::Reads::kInput    ? call.inputs[0]
                       : Op::kReads == scalar::Reads::kOutput ? call.outputs[0]
                                                              : g;
    const auto* from = static_cast<const float*>(read);
    auto* dx = static_cast<float*>(gradient);
    ParallelFor(count_, kGrain, [g, from, dx, this](int64_t begin, int64_t end) {
      const Op op = op_;
      for (int64_t i = begin; i < end; ++i) dx[i] = g[i] * op.Slope(from[i]);
    });
  }

 private:
  int64_t count_;
  Op op_;
};

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareUnary(const OpSpec& spec) {
  return Prepared<UnaryOp<Op>>(spec, Op(spec));
}

// Operators for any element type, without a gradient. F::Value(x) is a template.
template <typename From, typename To, typename F>
class MapOp final : public PreparedOp {
 public:
  explicit MapOp(const OpSpec& spec) : count_(spec.output(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const From*>(call.inputs[0]);
    auto* y = static_cast<To*>(call.outputs[0]);
    ParallelFor(count_, kGrain, [x, y](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = static_cast<To>(F::Value(x[i]));
    });
  }
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }

 private:
  int64_t count_;
};

template <typename From, typename To, typename F>
std::unique_ptr<PreparedOp> MakeMap(const OpSpec& spec) {
  return std::make_unique<MapOp<From, To, F>>(spec);
}

}  // namespace ckplan::cpu
