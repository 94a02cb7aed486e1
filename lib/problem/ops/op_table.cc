#include "lib/problem/ops/op_table.h"

#include <algorithm>
#include <array>

namespace ckplan {

namespace {

using namespace reads;   // NOLINT: op_table.def uses these letters.
using namespace traits;  // NOLINT: op_table.def's last column uses these names.

constexpr OpRule kRows[] = {
#define CKPLAN_OP(type, kind, minimal, torch, statistic, work, amount, traits) \
  {#type,                                                                      \
   OpKind::kind,                                                               \
   static_cast<uint16_t>(minimal),                                             \
   static_cast<uint16_t>(torch),                                               \
   Statistic::statistic,                                                       \
   WorkKind::work,                                                             \
   amount,                                                                     \
   static_cast<uint16_t>(traits)},
#include "lib/problem/ops/op_table.def"
#undef CKPLAN_OP
};

constexpr auto kRules = [] {
  auto rules = std::to_array(kRows);
  std::sort(rules.begin(), rules.end(),
            [](const OpRule& a, const OpRule& b) { return a.type < b.type; });
  return rules;
}();

// The row of every operator that is not in the table: it is assumed to do all that any operator may
// do.
constexpr OpRule kUnknownRule{"", OpKind::kUnknown, V | Z | I, V | Z | I};

struct Spelling {
  std::string_view name;
  std::string_view type;  // ONNX's spelling.
};

constexpr Spelling kSpellings[] = {
    {"Relu6", "Clip"}, {"Silu", "Swish"}, {"conv", "Conv"}, {"gelu", "Gelu"}, {"relu", "Relu"}};

}  // namespace

bool OpRule::is_elementwise() const {
  return kind == OpKind::kElementwise || kind == OpKind::kAdd || kind == OpKind::kSub ||
         kind == OpKind::kNoGradientElementwise || kind == OpKind::kDropout;
}

bool OpRule::has_gradient() const {
  switch (kind) {
    case OpKind::kNoGradient:
    case OpKind::kNoGradientElementwise:
    case OpKind::kShapeOnly:
    case OpKind::kLiteral:
    case OpKind::kFill:
    case OpKind::kRandom:
    case OpKind::kRandomLike:
      return false;
    default:
      return true;
  }
}

bool OpRule::is_random() const {
  return kind == OpKind::kRandom || kind == OpKind::kRandomLike || kind == OpKind::kDropout;
}

bool OpRule::is_movement() const { return kind >= OpKind::kView && kind <= OpKind::kMoveBySize; }

std::span<const OpRule> AllOpRules() { return kRules; }

const OpRule& RuleOf(std::string_view type) {
  const auto found =
      std::lower_bound(kRules.begin(), kRules.end(), type,
                       [](const OpRule& rule, std::string_view t) { return rule.type < t; });
  return found == kRules.end() || found->type != type ? kUnknownRule : *found;
}

const OpRule& RuleOfSpelling(std::string_view name) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.name == name) return RuleOf(spelling.type);
  }
  return RuleOf(name);
}

bool HasGradient(std::string_view type) {
  const OpRule& rule = RuleOf(type);
  return rule.is_known() && rule.has_gradient();
}

}  // namespace ckplan
