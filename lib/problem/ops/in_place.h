// Operations that PyTorch runs in place, such as LeakyReLU(inplace=True).
//
// Their input is lost. So a LeakyReLU in place saves its output, where the same LeakyReLU out of
// place saves its input.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The attribute of an operator that was run in place: 1, or 2 where it wrote a view of another
// tensor.
inline constexpr std::string_view kInPlaceAttribute = "in_place";
inline constexpr int64_t kInPlaceOnView = 2;

inline bool IsInPlace(const OpSpec& spec) { return spec.Int(kInPlaceAttribute, 0) != 0; }
inline bool IsInPlaceOnView(const OpSpec& spec) {
  return spec.Int(kInPlaceAttribute, 0) == kInPlaceOnView;
}

}  // namespace ckplan
