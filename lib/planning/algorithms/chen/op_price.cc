#include "lib/planning/algorithms/chen/op_price.h"

#include <algorithm>
#include <array>
#include <string>

#include "lib/base/lower_case.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {
namespace {

// Parts of the names of other frameworks' operators ("BatchNorm2d", "Conv+Relu"), in lower case;
// "elu" is in relu, gelu, ... Costly parts are tried first.
constexpr std::array kCostlyParts = {"conv",   "gemm", "matmul", "linear",    "dense",
                                     "einsum", "lstm", "gru",    "attention", "embedding"};
constexpr std::array kNormOrActivationParts = {
    "norm", "relu", "elu",  "gelu",     "sigmoid",  "tanh",   "swish",
    "silu", "mish", "clip", "softplus", "softsign", "shrink", "activation"};
constexpr std::array kOtherCheapParts = {"pool", "dropout"};
// These are whole names, since they are so short that other names contain them by chance.
constexpr std::array kOtherCheapNames = {"erf", "exp", "log", "lrn", "abs", "neg", "sqrt"};
constexpr std::array kCostlyNames = {"rnn", "fc"};

template <typename Names>
bool HasPart(const std::string& op, const Names& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return op.find(part) != std::string::npos; });
}

template <typename Names>
bool IsOneOf(const std::string& op, const Names& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

OpPrice PriceOfRule(const OpRule& rule) {
  if (rule.is_costly()) return OpPrice::kCostly;
  if (rule.has(traits::kActivation | traits::kNormalisation)) return OpPrice::kNormOrActivation;
  return rule.is_cheap() ? OpPrice::kOtherCheap : OpPrice::kUnknown;
}

}  // namespace

OpPrice PriceOf(std::string_view op) {
  if (const OpRule& rule = RuleOf(op); rule.is_known()) return PriceOfRule(rule);
  const std::string lower = LowerCase(op);
  if (IsOneOf(lower, kCostlyNames) || HasPart(lower, kCostlyParts)) return OpPrice::kCostly;
  // "MaxPool+Relu" counts as a pooling.
  if (HasPart(lower, kOtherCheapParts) || IsOneOf(lower, kOtherCheapNames)) {
    return OpPrice::kOtherCheap;
  }
  if (HasPart(lower, kNormOrActivationParts)) return OpPrice::kNormOrActivation;
  return OpPrice::kUnknown;
}

}  // namespace ckplan
