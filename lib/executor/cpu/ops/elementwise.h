// Code shared by elementwise operators with one and two operands.
#pragma once

#include <memory>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/reduction.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/executor/scalar/binary.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::cpu {

// Base class of elementwise operators with one input. lib/executor/scalar/unary.h defines Op.
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

 private:
  int64_t count_;
};

// Base class of elementwise operators with two inputs, each broadcast to the output.
// lib/executor/scalar/binary.h defines Op.

// Computes y[i] = f(a[i], b[i]) along a run; a stride is 0 or 1.
template <typename T, typename R, typename F>
void MapRun(const T* a, int64_t a_stride, const T* b, int64_t b_stride, R* y, int64_t length,
            const F& f) {
  if (a_stride != 0 && b_stride != 0) {
    for (int64_t i = 0; i < length; ++i) y[i] = f(a[i], b[i]);
  } else if (a_stride != 0) {
    const T same = *b;
    for (int64_t i = 0; i < length; ++i) y[i] = f(a[i], same);
  } else if (b_stride != 0) {
    const T same = *a;
    for (int64_t i = 0; i < length; ++i) y[i] = f(same, b[i]);
  } else {
    const R same = f(*a, *b);
    for (int64_t i = 0; i < length; ++i) y[i] = same;
  }
}

template <typename T, typename R, typename Op>
class BinaryMap : public PreparedOp {
 public:
  explicit BinaryMap(const OpSpec& spec)
      : layout_(BroadcastLayout(spec.output(0).dims, {spec.input(0).dims, spec.input(1).dims})) {}

  void Forward(const ForwardCall& call) override {
    const auto* a = static_cast<const T*>(call.inputs[0]);
    const auto* b = static_cast<const T*>(call.inputs[1]);
    auto* y = static_cast<R*>(call.outputs[0]);
    const int64_t a_stride = layout_.inner_stride(0);
    const int64_t b_stride = layout_.inner_stride(1);
    ForRuns(layout_, [=](const int64_t* at, int64_t length) {
      MapRun(a + at[0], a_stride, b + at[1], b_stride, y + at[2], length,
             [](T p, T q) { return static_cast<R>(Op::Value(p, q)); });
    });
  }

 protected:
  Layout layout_;  // Operands: a, b, y.
};

template <typename Op>
class BinaryOp final : public BinaryMap<float, float, Op> {
 public:
  explicit BinaryOp(const OpSpec& spec) : BinaryMap<float, float, Op>(spec) {
    for (const size_t input : {size_t{0}, size_t{1}}) {
      is_whole_[input] = spec.inputs[input].elements() == spec.output(0).elements();
      if (!is_whole_[input] && spec.inputs[input].has_gradient) {
        reductions_[input] = Reduction(this->layout_, input);
      }
    }
  }

  OpWorkspace workspace() const override {
    return {0, std::max(reductions_[0].workspace(), reductions_[1].workspace())};
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == 0) {
      Backward<Op::kFirst, Op::First>(call, 0, static_cast<float*>(gradient));
    } else {
      Backward<Op::kSecond, Op::Second>(call, 1, static_cast<float*>(gradient));
    }
  }

 private:
  // Writes g[i] dy/dx[i] for a run to `to`.
  template <scalar::Partial partial, auto slope>
  void MultiplyRun(const BackwardCall& call, const int64_t* at, int64_t length, float* to) const {
    const float* g = static_cast<const float*>(call.output_gradients[0]) + at[2];
    const float* a = partial.reads_a ? static_cast<const float*>(call.inputs[0]) + at[0] : g;
    const float* b = partial.reads_b ? static_cast<const float*>(call.inputs[1]) + at[1] : g;
    const float* y = partial.reads_y ? static_cast<const float*>(call.outputs[0]) + at[2] : g;
    const int64_t a_stride = partial.reads_a ? this->layout_.inner_stride(0) : 1;
    const int64_t b_stride = partial.reads_b ? this->layout_.inner_stride(1) : 1;
    if (a_stride != 0 && b_stride != 0) {
      for (int64_t i = 0; i < length; ++i) to[i] = g[i] * slope(a[i], b[i], y[i]);
    } else if (a_stride != 0) {
      const float same = *b;
      for (int64_t i = 0; i < length; ++i) to[i] = g[i] * slope(a[i], same, y[i]);
    } else if (b_stride != 0) {
      const float same = *a;
      for (int64_t i = 0; i < length; ++i) to[i] = g[i] * slope(same, b[i], y[i]);
    } else {
      const float first = *a;
      const float second = *b;
      for (int64_t i = 0; i < length; ++i) to[i] = g[i] * slope(first, second, y[i]);
    }
  }

  template <scalar::Partial partial, auto slope>
  void Backward(const BackwardCall& call, size_t position, float* gradient) const {
    if (is_whole_[position]) {
      ForRuns(this->layout_, [&, gradient](const int64_t* at, int64_t length) {
        MultiplyRun<partial, slope>(call, at, length, gradient + at[2]);
      });
      return;
    }
    const auto segment = [&](const int64_t* at, int64_t length, float* buffer) -> const float* {
      MultiplyRun<partial, slope>(call, at, length, buffer);
      return buffer;
    };
    reductions_[position].template Run<SumOf>(gradient, call.workspace, segment);
  }

  bool is_whole_[2] = {};
  Reduction reductions_[2];
};

}  // namespace ckplan::cpu
