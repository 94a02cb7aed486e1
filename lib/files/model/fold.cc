#include "lib/files/model/fold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lib/base/units.h"
#include "lib/files/model/fold_rules.h"

namespace ckplan {

namespace folding {

namespace {

using MaybeInt = std::optional<int64_t>;

MaybeInt SubtractInts(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}

MaybeInt DivideInts(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
  return a / b;
}

MaybeInt FloorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? std::nullopt : MaybeInt(0);
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

MaybeInt IntPower(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  MaybeInt power = 1;
  for (; exponent > 0 && power.has_value(); --exponent) power = CheckedMul(*power, base);
  return power;
}

MaybeInt MinOfInts(int64_t a, int64_t b) { return std::min(a, b); }
MaybeInt MaxOfInts(int64_t a, int64_t b) { return std::max(a, b); }
MaybeInt And(int64_t a, int64_t b) { return a != 0 && b != 0 ? 1 : 0; }
MaybeInt Or(int64_t a, int64_t b) { return a != 0 || b != 0 ? 1 : 0; }
MaybeInt Xor(int64_t a, int64_t b) { return (a != 0) != (b != 0) ? 1 : 0; }

MaybeInt Not(int64_t x) { return x == 0 ? 1 : 0; }
MaybeInt NegateInt(int64_t x) { return CheckedMul(x, -1); }
MaybeInt AbsOfInt(int64_t x) { return x < 0 ? CheckedMul(x, -1) : x; }
MaybeInt SignOfInt(int64_t x) { return x < 0 ? -1 : x > 0 ? 1 : 0; }

double Mod(double a, double b) { return std::fmod(a, b); }
double Power(double a, double b) { return std::pow(a, b); }
double MinOf(double a, double b) { return std::min(a, b); }
double MaxOf(double a, double b) { return std::max(a, b); }

template <typename ModelOperation>
double Apply(double a, double b) {
  return ModelOperation()(a, b);
}

template <typename Comparison>
MaybeInt HoldsForInts(int64_t a, int64_t b) {
  return Comparison()(a, b) ? 1 : 0;
}
template <typename Comparison>
double HoldsForReals(double a, double b) {
  return Comparison()(a, b) ? 1 : 0;
}

double Negate(double x) { return -x; }
double Absolute(double x) { return std::fabs(x); }
double Floor(double x) { return std::floor(x); }
double Ceil(double x) { return std::ceil(x); }
double RoundHalfToEven(double x) { return std::nearbyint(x); }  // ONNX's Round requires this.
double Sqrt(double x) { return std::sqrt(x); }
double Reciprocal(double x) { return 1 / x; }
double Exp(double x) { return std::exp(x); }
double Log(double x) { return std::log(x); }

template <typename Comparison>
constexpr FoldRule CompareBy(std::string_view op) {
  return {op, FoldComparison, HoldsForInts<Comparison>, HoldsForReals<Comparison>};
}

constexpr FoldRule kFoldRules[] = {
    {"Constant", FoldConstant},
    {"Shape", FoldShape},
    {"Size", FoldSize},
    {"ConstantOfShape", FoldConstantOfShape},
    {"Range", FoldRange},
    {"Concat", FoldConcat},
    {"Split", FoldSplit},
    {"NonZero", FoldNonZero},
    {"Cast", FoldCast},
    {"CastLike", FoldCast},
    {"Where", FoldWhere},
    {"ReduceProd", FoldReduce, CheckedMul, Apply<std::multiplies<>>},
    {"ReduceSum", FoldReduce, CheckedAdd, Apply<std::plus<>>},
    {"ReduceMin", FoldReduce, MinOfInts, MinOf},
    {"ReduceMax", FoldReduce, MaxOfInts, MaxOf},
    {"Add", FoldBinary, CheckedAdd, Apply<std::plus<>>},
    {"Sum", FoldBinary, CheckedAdd, Apply<std::plus<>>},
    {"Sub", FoldBinary, SubtractInts, Apply<std::minus<>>},
    {"Mul", FoldBinary, CheckedMul, Apply<std::multiplies<>>},
    {"Div", FoldBinary, DivideInts, Apply<std::divides<>>},
    {"Mod", FoldBinary, FloorMod, Mod},
    {"Pow", FoldBinary, IntPower, Power},
    {"Min", FoldBinary, MinOfInts, MinOf},
    {"Max", FoldBinary, MaxOfInts, MaxOf},
    {"And", FoldBinary, And},
    {"Or", FoldBinary, Or},
    {"Xor", FoldBinary, Xor},
    CompareBy<std::equal_to<>>("Equal"),
    CompareBy<std::less<>>("Less"),
    CompareBy<std::greater<>>("Greater"),
    CompareBy<std::less_equal<>>("LessOrEqual"),
    CompareBy<std::greater_equal<>>("GreaterOrEqual"),
    {.op = "Not", .fold = FoldUnary, .change_int = Not},
    {.op = "Sign", .fold = FoldUnary, .change_int = SignOfInt},
    {.op = "Neg", .fold = FoldUnary, .change_int = NegateInt, .change_real = Negate},
    {.op = "Abs", .fold = FoldUnary, .change_int = AbsOfInt, .change_real = Absolute},
    {.op = "Floor", .fold = FoldUnary, .change_real = Floor},
    {.op = "Ceil", .fold = FoldUnary, .change_real = Ceil},
    {.op = "Round", .fold = FoldUnary, .change_real = RoundHalfToEven},
    {.op = "Sqrt", .fold = FoldUnary, .change_real = Sqrt},
    {.op = "Reciprocal", .fold = FoldUnary, .change_real = Reciprocal},
    {.op = "Exp", .fold = FoldUnary, .change_real = Exp},
    {.op = "Log", .fold = FoldUnary, .change_real = Log},
    {.op = "Identity", .fold = FoldMove, .map = MapCopy},
    {.op = "Reshape", .fold = FoldMove, .map = MapReshape},
    {.op = "Squeeze", .fold = FoldMove, .map = MapSqueeze},
    {.op = "Unsqueeze", .fold = FoldMove, .map = MapUnsqueeze},
    {.op = "Flatten", .fold = FoldMove, .map = MapFlatten},
    {.op = "Slice", .fold = FoldMove, .map = MapSlice},
    {.op = "Expand", .fold = FoldMove, .map = MapExpand},
    {.op = "Transpose", .fold = FoldMove, .map = MapTranspose},
    {.op = "Tile", .fold = FoldMove, .map = MapTile},
    {.op = "Gather", .fold = FoldMove, .map = MapGather},
};

const FoldRule* FindRule(std::string_view op) {
  const auto found = std::find_if(std::begin(kFoldRules), std::end(kFoldRules),
                                  [op](const FoldRule& rule) { return rule.op == op; });
  return found == std::end(kFoldRules) ? nullptr : found;
}

}  // namespace

bool IsSmall(const Dims& dims) {
  const auto count = ElementCount(dims);
  return count.has_value() && *count <= kMaxFoldedElements;
}

Folded One(ConstantValue value) {
  NormalizeToType(value);
  std::vector<ConstantValue> outputs;
  outputs.push_back(std::move(value));
  return outputs;
}

const ConstantValue* Known(const Inputs& inputs, size_t i) {
  return i < inputs.size() ? inputs[i].value : nullptr;
}

bool AllKnown(const Inputs& inputs) {
  return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [](const FoldInput& input) {
    return input.value != nullptr;
  });
}

ConstantValue Pick(const ConstantValue& from, ElementMap map) {
  ConstantValue value{from.elem_type, std::move(map.dims), {}, {}};
  for (const size_t source : map.sources) {
    if (from.is_float()) {
      value.reals.push_back(from.reals[source]);
    } else {
      value.ints.push_back(from.ints[source]);
    }
  }
  return value;
}

}  // namespace folding

std::optional<std::vector<ConstantValue>> FoldNode(const onnx::NodeProto& node,
                                                   const std::vector<FoldInput>& inputs) {
  const folding::FoldRule* rule = folding::FindRule(node.op_type());
  if (rule == nullptr) return std::nullopt;
  return rule->fold(*rule, node, inputs);
}

bool IsFolded(std::string_view op_type) { return folding::FindRule(op_type) != nullptr; }

}  // namespace ckplan
