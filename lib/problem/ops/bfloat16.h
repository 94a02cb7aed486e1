// bfloat16 on the host: the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace ckplan {

constexpr float FromBFloat16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

// Rounds to the nearest value, ties to even; NaN stays NaN.
constexpr uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

inline std::vector<uint16_t> ToBFloat16(std::span<const float> values) {
  std::vector<uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) halves.push_back(ToBFloat16(value));
  return halves;
}

inline std::vector<float> FromBFloat16(std::span<const uint16_t> halves) {
  std::vector<float> values;
  values.reserve(halves.size());
  for (const uint16_t half : halves) values.push_back(FromBFloat16(half));
  return values;
}

}  // namespace ckplan
