// How Scatter operators combine an update with what is there.
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "lib/backend/backend.h"
#include "lib/cpu/integers.h"
#include "lib/cpu/registry.h"
#include "lib/cpu/strided_copy.h"

namespace ckplan::cpu {

struct ScatterSet {
  template <typename T>
  static T Combine(T, T update) {
    return update;
  }
};
struct ScatterAdd {
  template <typename T>
  static T Combine(T old, T update) {
    if constexpr (std::is_same_v<T, float>) return old + update;
    if constexpr (!std::is_same_v<T, float>) return WrapAdd(old, update);
  }
};
struct ScatterMul {
  template <typename T>
  static T Combine(T old, T update) {
    if constexpr (std::is_same_v<T, float>) return old * update;
    if constexpr (!std::is_same_v<T, float>) return WrapMul(old, update);
  }
};
struct ScatterMax {
  template <typename T>
  static T Combine(T old, T update) {
    return std::max(old, update);
  }
};
struct ScatterMin {
  template <typename T>
  static T Combine(T old, T update) {
    return std::min(old, update);
  }
};

// Calls with a T and a reduction, for those that this spec names; kUnsupported otherwise.
template <typename Body>
Result<std::unique_ptr<PreparedOp>> WithScatterReduction(const OpSpec& spec, const Body& body) {
  const std::string reduction = spec.String("reduction", "none");
  std::unique_ptr<PreparedOp> op;
  if (reduction == "none") {
    WithElementOf(SizeOf(spec.input(0).type), [&](auto zero) { op = body(zero, ScatterSet()); });
    return op;
  }
  const bool wants_gradient = spec.input(0).has_gradient || spec.input(2).has_gradient;
  if (wants_gradient && reduction != "add") {
    return Unsupported(
        spec, "backward sees its indices alone, and reduction \"" + reduction + "\" needs more");
  }
  const auto with_type = [&](auto kind) {
    if (spec.input(0).type == ElementType::kFloat32) op = body(0.0F, kind);
    if (spec.input(0).type == ElementType::kInt32) op = body(int32_t{}, kind);
    if (spec.input(0).type == ElementType::kInt64) op = body(int64_t{}, kind);
  };
  if (reduction == "add") with_type(ScatterAdd());
  if (reduction == "mul") with_type(ScatterMul());
  if (reduction == "max") with_type(ScatterMax());
  if (reduction == "min") with_type(ScatterMin());
  if (op == nullptr) {
    return Unsupported(spec, "it has no kernel for reduction \"" + reduction + "\" of this type");
  }
  return op;
}

}  // namespace ckplan::cpu
