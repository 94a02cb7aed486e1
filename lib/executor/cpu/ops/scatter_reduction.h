// How Scatter operators combine an update with the existing value.
#pragma once

#include <algorithm>
#include <type_traits>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/gather.h"

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
    if constexpr (!std::is_same_v<T, float>) return scalar::WrapAdd(old, update);
  }
};
struct ScatterMul {
  template <typename T>
  static T Combine(T old, T update) {
    if constexpr (std::is_same_v<T, float>) return old * update;
    if constexpr (!std::is_same_v<T, float>) return scalar::WrapMul(old, update);
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

// Calls body with the element type T and the reduction that this spec names.
template <typename Body>
Result<std::unique_ptr<PreparedOp>> WithScatterReduction(const OpSpec& spec, const Body& body) {
  CKPLAN_ASSIGN_OR_RETURN(const Scattering scattering, ReadScattering(spec));
  std::unique_ptr<PreparedOp> op;
  const auto with_type = [&](auto kind) {
    if (spec.input(0).type == ElementType::kFloat32) op = body(0.0F, kind);
    if (spec.input(0).type == ElementType::kInt32) op = body(int32_t{}, kind);
    if (spec.input(0).type == ElementType::kInt64) op = body(int64_t{}, kind);
  };
  switch (scattering) {
    case Scattering::kSet:
      WithElementOf(SizeOf(spec.input(0).type), [&](auto zero) { op = body(zero, ScatterSet()); });
      break;
    case Scattering::kAdd:
      with_type(ScatterAdd());
      break;
    case Scattering::kMul:
      with_type(ScatterMul());
      break;
    case Scattering::kMax:
      with_type(ScatterMax());
      break;
    case Scattering::kMin:
      with_type(ScatterMin());
      break;
  }
  return op;
}

}  // namespace ckplan::cpu
