// Comparisons, boolean logic, and selection by a condition.
#include "lib/executor/scalar/logic.h"

#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/binary.h"

namespace ckplan::cpu {

namespace {

template <typename T, typename F>
std::unique_ptr<PreparedOp> MakeTest(const OpSpec& spec) {
  return std::make_unique<BinaryMap<T, uint8_t, F>>(spec);
}

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareTest(const OpSpec& spec) {
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
      return MakeTest<float, F>(spec);
    case ElementType::kInt32:
      return MakeTest<int32_t, F>(spec);
    case ElementType::kInt64:
      return MakeTest<int64_t, F>(spec);
    case ElementType::kBool:
      return MakeTest<uint8_t, F>(spec);
    case ElementType::kBFloat16:  // The backend refuses bfloat16 earlier.
      break;
  }
  return Unsupported(spec, "its inputs are bfloat16");
}

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareBits(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<BinaryMap<int32_t, int32_t, F>>(spec);
  }
  return Prepared<BinaryMap<int64_t, int64_t, F>>(spec);
}

template <typename T>
class WhereMap : public PreparedOp {
 public:
  explicit WhereMap(const OpSpec& spec)
      : layout_(BroadcastLayout(spec.output(0).dims,
                                {spec.input(0).dims, spec.input(1).dims, spec.input(2).dims})) {}

  void Forward(const ForwardCall& call) override {
    const auto* c = static_cast<const uint8_t*>(call.inputs[0]);
    const auto* a = static_cast<const T*>(call.inputs[1]);
    const auto* b = static_cast<const T*>(call.inputs[2]);
    auto* y = static_cast<T*>(call.outputs[0]);
    const int64_t c_stride = layout_.inner_stride(0);
    const int64_t a_stride = layout_.inner_stride(1);
    const int64_t b_stride = layout_.inner_stride(2);
    ForRuns(layout_, [=](const int64_t* at, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        const T first = a[at[1] + i * a_stride];
        const T second = b[at[2] + i * b_stride];
        y[at[3] + i] = c[at[0] + i * c_stride] != 0 ? first : second;
      }
    });
  }
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }

 protected:
  Layout layout_;
};

class WhereOp final : public WhereMap<float> {
 public:
  explicit WhereOp(const OpSpec& spec) : WhereMap<float>(spec) {
    for (const size_t input : {size_t{1}, size_t{2}}) {
      is_whole_[input] = spec.inputs[input].elements() == spec.output(0).elements();
      if (!is_whole_[input] && spec.inputs[input].has_gradient) {
        reductions_[input] = Reduction(layout_, input);
      }
    }
  }
  OpWorkspace workspace() const override {
    return {0, std::max(reductions_[1].workspace(), reductions_[2].workspace())};
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* c = static_cast<const uint8_t*>(call.inputs[0]);
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    const int64_t c_stride = layout_.inner_stride(0);
    const bool chosen = position == 1;
    const auto choose = [=](const int64_t* at, int64_t length, float* to) -> const float* {
      for (int64_t i = 0; i < length; ++i) {
        to[i] = (c[at[0] + i * c_stride] != 0) == chosen ? g[at[3] + i] : 0.0F;
      }
      return to;
    };
    if (is_whole_[position]) {
      ForRuns(layout_, [=](const int64_t* at, int64_t length) { choose(at, length, dx + at[3]); });
    } else {
      reductions_[position].Run<SumOf>(dx, call.workspace, choose);
    }
  }

 private:
  bool is_whole_[3] = {};
  Reduction reductions_[3];
};

Result<std::unique_ptr<PreparedOp>> PrepareWhere(const OpSpec& spec) {
  switch (SizeOf(spec.input(1).type)) {
    case 8:
      return std::unique_ptr<PreparedOp>(std::make_unique<WhereMap<int64_t>>(spec));
    case 1:
      return std::unique_ptr<PreparedOp>(std::make_unique<WhereMap<uint8_t>>(spec));
    default:
      break;
  }
  if (spec.input(1).type == ElementType::kInt32) {
    return std::unique_ptr<PreparedOp>(std::make_unique<WhereMap<int32_t>>(spec));
  }
  return std::unique_ptr<PreparedOp>(std::make_unique<WhereOp>(spec));
}

constexpr OpRow kLogicOps[] = {
    {"Equal", PrepareTest<scalar::Equal>},
    {"Less", PrepareTest<scalar::Less>},
    {"LessOrEqual", PrepareTest<scalar::LessOrEqual>},
    {"Greater", PrepareTest<scalar::Greater>},
    {"GreaterOrEqual", PrepareTest<scalar::GreaterOrEqual>},
    {"And", PrepareTest<scalar::And>},
    {"Or", PrepareTest<scalar::Or>},
    {"Xor", PrepareTest<scalar::Xor>},
    {"BitwiseAnd", PrepareBits<scalar::BitwiseAnd>},
    {"BitwiseOr", PrepareBits<scalar::BitwiseOr>},
    {"BitwiseXor", PrepareBits<scalar::BitwiseXor>},
    {"Where", PrepareWhere},
};

}  // namespace

std::span<const OpRow> LogicOps() { return kLogicOps; }

}  // namespace ckplan::cpu
