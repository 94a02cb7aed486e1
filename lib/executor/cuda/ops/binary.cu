// Arithmetic operators with two operands.
#include <algorithm>

#include "lib/executor/cuda/ops/elementwise.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/binary.h"
#include "lib/problem/ops/elementwise.h"

namespace ckplan::cuda {

namespace {

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec, Device& device) {
  if (!FitsDevice(BinaryLayout(spec))) return Unsupported(spec, kTooManyAxes);
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<BinaryMap<int32_t, int32_t, Op>>(spec, device);
  }
  return Prepared<BinaryMap<int64_t, int64_t, Op>>(spec, device);
}

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareFloats(const OpSpec& spec, Device& device) {
  if (!FitsDevice(BinaryLayout(spec))) return Unsupported(spec, kTooManyAxes);
  return Prepared<BinaryOp<Op>>(spec, device);
}

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareBinary(const OpSpec& spec, Device& device) {
  if (IsFloat(spec.input(0).type)) return PrepareFloats<Op>(spec, device);
  return PrepareIntegers<Op>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PreparePRelu(const OpSpec& spec, Device& device) {
  return PrepareFloats<scalar::PRelu>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareMod(const OpSpec& spec, Device& device) {
  if (spec.Int("fmod", 0) != 0) return PrepareBinary<scalar::Remainder>(spec, device);
  return PrepareIntegers<scalar::Modulo>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareKnownPower(const OpSpec& spec, Device& device,
                                                      double exponent) {
  if (exponent == 2) return Prepared<UnaryOp<scalar::Square>>(spec, device, scalar::Square());
  if (exponent == 3) return Prepared<UnaryOp<scalar::Cube>>(spec, device, scalar::Cube());
  if (exponent == 0.5)
    return Prepared<UnaryOp<scalar::SquareRoot>>(spec, device, scalar::SquareRoot());
  if (exponent == -0.5)
    return Prepared<UnaryOp<scalar::InverseRoot>>(spec, device, scalar::InverseRoot());
  return Prepared<UnaryOp<scalar::PowerOf>>(spec, device,
                                            scalar::PowerOf{static_cast<float>(exponent)});
}

Result<std::unique_ptr<PreparedOp>> PreparePow(const OpSpec& spec, Device& device) {
  if (const auto exponent = KnownExponent(spec)) return PrepareKnownPower(spec, device, *exponent);
  return PrepareBinary<scalar::Pow>(spec, device);
}

constexpr OpRow kBinaryOps[] = {
    {"Add", PrepareBinary<scalar::Add>},
    {"Sub", PrepareBinary<scalar::Sub>},
    {"Mul", PrepareBinary<scalar::Mul>},
    {"Div", PrepareBinary<scalar::Div>},
    {"Mod", PrepareMod},
    {"Pow", PreparePow},
    {"PRelu", PreparePRelu},
};

}  // namespace

std::span<const OpRow> BinaryOps() { return kBinaryOps; }

// Comparisons, boolean logic, and selection by a condition.

namespace {

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareComparison(const OpSpec& spec, Device& device) {
  if (!FitsDevice(BinaryLayout(spec))) return Unsupported(spec, kTooManyAxes);
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
    case ElementType::kBFloat16:
      return Prepared<BinaryMap<float, uint8_t, F>>(spec, device);
    case ElementType::kInt32:
      return Prepared<BinaryMap<int32_t, uint8_t, F>>(spec, device);
    case ElementType::kInt64:
      return Prepared<BinaryMap<int64_t, uint8_t, F>>(spec, device);
    case ElementType::kBool:
      return Prepared<BinaryMap<uint8_t, uint8_t, F>>(spec, device);
  }
  return Unsupported(spec, "its inputs have an unknown element type");
}

Layout WhereLayout(const OpSpec& spec) {
  return BroadcastLayout(spec.output(0).dims,
                         {spec.input(0).dims, spec.input(1).dims, spec.input(2).dims});
}

// An operator on integers and booleans, without a gradient.
template <typename T>
class WhereMap final : public PreparedOp {
 public:
  WhereMap(const OpSpec& spec, Device& device) : device_(device), layout_(WhereLayout(spec)) {}

  void Forward(const ForwardCall& call) override {
    const auto* c = static_cast<const uint8_t*>(call.inputs[0]);
    const auto* a = static_cast<const T*>(call.inputs[1]);
    const auto* b = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    const DeviceLayout<3> layout = layout_;
    ForEach(device_, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
      const auto at = layout.Find(i);
      y[i] = c[at[0]] != 0 ? a[at[1]] : b[at[2]];
    });
  }

 private:
  Device& device_;
  DeviceLayout<3> layout_;
};

// A group of conditions, read by one memory access.
struct alignas(4) Bool4 {
  uint8_t at[kVector];
};

CKPLAN_DEVICE inline Bool4 LoadConditions(const uint8_t* from, bool moves, int64_t offset) {
  if (moves) return reinterpret_cast<const Bool4*>(from)[offset];
  const uint8_t same = from[offset];
  return Bool4{{same, same, same, same}};
}

// The work of one Where thread.
struct Choose {
  BroadcastWalk<3> walk;  // The operands are the condition, a and b.
  const uint8_t* conditions;
  FloatsIn a, b;
  FloatsOut y;

  CKPLAN_DEVICE void operator()(int64_t step) const {
    const auto at = walk.Find(step);
    if (walk.IsWholeGroup(step)) {
      const Bool4 condition = LoadConditions(conditions, walk.moves(0), at[0]);
      Float4 chosen = walk.Load(a, 1, at[1]);
      const Float4 other = walk.Load(b, 2, at[2]);
      for (int lane = 0; lane < kVector; ++lane) {
        chosen.at[lane] = condition.at[lane] != 0 ? chosen.at[lane] : other.at[lane];
      }
      y.Store(step, chosen);
    } else if (!walk.is_grouped()) {
      y.Set(step, conditions[at[0]] != 0 ? a[at[1]] : b[at[2]]);
    } else {
      for (int64_t i = step * kVector; i < walk.count(); ++i) {
        const int64_t k = i - step * kVector;
        const bool condition = conditions[walk.Tail(0, at[0], k)] != 0;
        y.Set(i, condition ? a[walk.Tail(1, at[1], k)] : b[walk.Tail(2, at[2], k)]);
      }
    }
  }
};

// The gradient of the operand that is selected where the condition is `selected`. The walk's only
// operand is the condition.
struct PassWhere {
  BroadcastWalk<1> walk;
  const uint8_t* conditions;
  bool selected;
  FloatsIn g;
  FloatsOut dx;

  CKPLAN_DEVICE void operator()(int64_t step) const {
    const int64_t at = walk.FindOne(0, step);
    if (walk.IsWholeGroup(step)) {
      const Bool4 condition = LoadConditions(conditions, walk.moves(0), at);
      Float4 passed = g.Load(step);
      for (int lane = 0; lane < kVector; ++lane) {
        if ((condition.at[lane] != 0) != selected) passed.at[lane] = 0;
      }
      dx.Store(step, passed);
    } else if (!walk.is_grouped()) {
      dx.Set(step, (conditions[at] != 0) == selected ? g[step] : 0.0F);
    } else {
      for (int64_t i = step * kVector; i < walk.count(); ++i) {
        const bool condition = conditions[walk.Tail(0, at, i - step * kVector)] != 0;
        dx.Set(i, condition == selected ? g[i] : 0.0F);
      }
    }
  }
};

// The gradient of one element as a summand. Offsets belong to the condition and the output.
struct WhereTerm {
  const uint8_t* conditions;
  bool selected;
  FloatsIn g;
  CKPLAN_DEVICE float operator()(const DeviceLayout<2>::Offsets& at) const {
    return (conditions[at[0]] != 0) == selected ? g[at[1]] : 0.0F;
  }
};

// The operator Where on floats.
class WhereOp final : public PreparedOp {
 public:
  WhereOp(const OpSpec& spec, Device& device)
      : device_(device),
        types_{ElementType::kBool, spec.input(1).type, spec.input(2).type},
        y_type_(spec.output(0).type) {
    const Layout layout = WhereLayout(spec);
    walk_ = BroadcastWalk<3>(layout);
    condition_walk_ = BroadcastWalk<1>({layout.dims, {layout.strides[0], layout.strides[3]}});
    for (const size_t input : {size_t{1}, size_t{2}}) {
      is_whole_[input] = spec.inputs[input].elements() == spec.output(0).elements();
      if (is_whole_[input] || !spec.inputs[input].has_gradient) continue;
      const Layout summed{layout.dims,
                          {layout.strides[0], layout.strides[3], layout.strides[input]}};
      sums_[input] = BroadcastSum<2>(summed, 2);
    }
  }
  OpWorkspace workspace() const override {
    return {0, std::max(sums_[1].workspace(), sums_[2].workspace())};
  }

  void Forward(const ForwardCall& call) override {
    ForEach(device_, walk_.steps(),
            Choose{walk_, static_cast<const uint8_t*>(call.inputs[0]),
                   FloatsIn(call.inputs[1], types_[1]), FloatsIn(call.inputs[2], types_[2]),
                   FloatsOut(call.outputs[0], y_type_)});
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* conditions = static_cast<const uint8_t*>(call.inputs[0]);
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, types_[position]);
    const bool selected = position == 1;
    if (is_whole_[position]) {
      ForEach(device_, condition_walk_.steps(),
              PassWhere{condition_walk_, conditions, selected, g, dx});
    } else {
      sums_[position].Run(device_, dx, WhereTerm{conditions, selected, g}, call.workspace);
    }
  }

 private:
  Device& device_;
  ElementType types_[3];
  ElementType y_type_;
  BroadcastWalk<3> walk_;
  BroadcastWalk<1> condition_walk_;
  bool is_whole_[3] = {};
  BroadcastSum<2> sums_[3];
};

Result<std::unique_ptr<PreparedOp>> PrepareWhere(const OpSpec& spec, Device& device) {
  if (!FitsDevice(WhereLayout(spec))) return Unsupported(spec, kTooManyAxes);
  switch (spec.input(1).type) {
    case ElementType::kInt64:
      return Prepared<WhereMap<int64_t>>(spec, device);
    case ElementType::kInt32:
      return Prepared<WhereMap<int32_t>>(spec, device);
    case ElementType::kBool:
      return Prepared<WhereMap<uint8_t>>(spec, device);
    case ElementType::kFloat32:
    case ElementType::kBFloat16:
      return Prepared<WhereOp>(spec, device);
  }
  return Unsupported(spec, "its inputs have an unknown element type");
}

constexpr OpRow kLogicOps[] = {
    {"Equal", PrepareComparison<scalar::Equal>},
    {"Less", PrepareComparison<scalar::Less>},
    {"LessOrEqual", PrepareComparison<scalar::LessOrEqual>},
    {"Greater", PrepareComparison<scalar::Greater>},
    {"GreaterOrEqual", PrepareComparison<scalar::GreaterOrEqual>},
    {"And", PrepareComparison<scalar::And>},
    {"Or", PrepareComparison<scalar::Or>},
    {"Xor", PrepareComparison<scalar::Xor>},
    {"Where", PrepareWhere},
};

}  // namespace

std::span<const OpRow> LogicOps() { return kLogicOps; }

}  // namespace ckplan::cuda
