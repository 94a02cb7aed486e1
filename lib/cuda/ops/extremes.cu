// Where the extremes of an axis are: ArgMax, ArgMin and Hardmax.
#include "lib/base/check.h"
#include "lib/cuda/families.h"
#include "lib/cuda/lines.h"

namespace ckplan::cuda {

namespace {

template <typename T>
struct Found {
  T value;
  int64_t index;  // -1: nothing yet.
};

// As a walk from the first element on would find it that takes what compares as better: a NaN
// never does, but nothing compares as better than one that it begins with.
template <typename T>
struct Better {
  bool is_max, takes_last;
  CKPLAN_DEVICE Found<T> Begin(T value, int64_t index) const {
    return {value, value != value && index != 0 ? -1 : index};
  }
  CKPLAN_DEVICE Found<T> operator()(const Found<T>& a, const Found<T>& b) const {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    if (a.value != a.value) return a;
    if (b.value != b.value) return b;
    if (a.value == b.value) return (a.index < b.index) != takes_last ? a : b;
    return (a.value > b.value) == is_max ? a : b;
  }
};

// What `Found` holds, and where it is read.
struct FloatElements {
  using Value = float;
  FloatsIn x;
  CKPLAN_DEVICE float operator[](int64_t i) const { return x[i]; }
};
template <typename T>
struct IntegerElements {
  using Value = T;
  const T* x;
  CKPLAN_DEVICE T operator[](int64_t i) const { return x[i]; }
};

template <typename T, typename Elements, typename B>
CKPLAN_KERNEL int64_t IndexOfBest(const T& team, const Line& line, int64_t size, const Elements& x,
                                  const B& better) {
  using Value = typename Elements::Value;
  return team
      .Reduce(
          size, Found<Value>{Value{0}, -1}, [&](int64_t i) { return better.Begin(x[line[i]], i); },
          better)
      .index;
}

template <typename Elements>
struct ArgLine {
  int64_t size;
  Elements x;
  Better<typename Elements::Value> better;
  int64_t* y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const int64_t best = IndexOfBest(team, line, size, x, better);
    if (team.IsFirst()) y[line.index] = Max(best, 0);
  }
};

struct HardmaxLine {
  int64_t size;
  FloatElements x;
  FloatsOut y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const int64_t best = IndexOfBest(team, line, size, x, Better<float>{true, false});
    team.ForEach(size, [&](int64_t i) { y.Set(line[i], i == best ? 1.0F : 0.0F); });
  }
};

class WithoutGradient : public PreparedOp {
 public:
  void BackwardInput(const BackwardCall&, size_t, void*) final {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }
};

class ArgExtremeOp final : public WithoutGradient {
 public:
  ArgExtremeOp(const OpSpec& spec, Device& device, const AxisView& view)
      : device_(device),
        view_(view),
        type_(spec.input(0).type),
        is_max_(spec.type == "ArgMax"),
        takes_last_(spec.Int("select_last_index", 0) != 0) {}

  void Forward(const ForwardCall& call) override {
    if (type_ == ElementType::kInt32) {
      Run(call, IntegerElements<int32_t>{static_cast<const int32_t*>(call.inputs[0])});
    } else if (type_ == ElementType::kInt64) {
      Run(call, IntegerElements<int64_t>{static_cast<const int64_t*>(call.inputs[0])});
    } else {
      Run(call, FloatElements{FloatsIn(call.inputs[0], type_)});
    }
  }

 private:
  template <typename Elements>
  void Run(const ForwardCall& call, const Elements& x) {
    ForLines(device_, view_,
             ArgLine<Elements>{
                 view_.size, x, {is_max_, takes_last_}, static_cast<int64_t*>(call.outputs[0])});
  }

  Device& device_;
  AxisView view_;
  ElementType type_;
  bool is_max_, takes_last_;
};

class HardmaxOp final : public WithoutGradient {
 public:
  HardmaxOp(const OpSpec& spec, Device& device, const AxisView& view)
      : device_(device), view_(view), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    ForLines(device_, view_,
             HardmaxLine{view_.size, FloatElements{FloatsIn(call.inputs[0], x_type_)},
                         FloatsOut(call.outputs[0], y_type_)});
  }

 private:
  Device& device_;
  AxisView view_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareArg(const OpSpec& spec, Device& device) {
  const Operand& x = spec.input(0);
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), x.dims.size()));
  if (x.type == ElementType::kBool) return Unsupported(spec, "its input is boolean");
  return Prepared<ArgExtremeOp>(spec, device, ViewAlong(x.dims, axis));
}

// Before opset 13 all axes from the given one on were one.
Result<std::unique_ptr<PreparedOp>> PrepareHardmax(const OpSpec& spec, Device& device) {
  const Dims& dims = spec.input(0).dims;
  const bool is_old = spec.opset < 13;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", is_old ? 1 : -1), dims.size()));
  AxisView view = ViewAlong(dims, axis);
  if (is_old) view = {view.outer, view.size * view.inner, 1};
  return Prepared<HardmaxOp>(spec, device, view);
}

constexpr OpRow kRows[] = {
    {"ArgMax", PrepareArg, false},
    {"ArgMin", PrepareArg, false},
    {"Hardmax", PrepareHardmax, false},
};

}  // namespace

std::span<const OpRow> ExtremeOps() { return kRows; }

}  // namespace ckplan::cuda
