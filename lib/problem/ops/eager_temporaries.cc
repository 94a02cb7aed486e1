#include "lib/problem/ops/eager_temporaries.h"

#include <algorithm>

#include "lib/problem/ops/counted_sizes.h"
#include "lib/problem/ops/in_place.h"

namespace ckplan {

namespace {

bool HasBroadcastGradient(const OpSpec& spec) {
  const int64_t elements = spec.output(0).elements();
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), [elements](const Operand& input) {
    return input.is_present && input.has_gradient && input.elements() < elements;
  });
}

}  // namespace

Bytes EagerTemporaries(const OpSpec& spec) {
  if (!spec.output(0).is_present) return Bytes(0);
  const Bytes result(spec.output(0).bytes());
  if (IsInPlaceOnView(spec)) return result + result;
  constexpr int64_t kErfOperations = 4;
  if (spec.type == "Abs") return result;
  if (spec.type == "CumSum") return result + result;
  if (spec.type == "Erf") return Bytes(SaturatingProduct({kErfOperations, result.count()}));
  if (spec.type == "Pow" && spec.input(0).has_gradient) return result + result;
  if (spec.type == "Div" && spec.input(1).has_gradient) return result + result;
  const bool multiplies = spec.type == "Mul" || spec.type == "PRelu";
  return multiplies && HasBroadcastGradient(spec) ? result : Bytes(0);
}

}  // namespace ckplan
