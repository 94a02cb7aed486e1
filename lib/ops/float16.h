// float16 (IEEE binary16) on the host. It is only decoded, when weights are read from a file;
// nothing is computed in it.
#pragma once

#include <bit>
#include <cstdint>

namespace ckplan {

constexpr float FromFloat16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {  // Zero or a subnormal number: the mantissa counts units of 2^-24.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t bits =
      exponent == 31 ? 0x7F800000U | (mantissa << 13) : ((exponent + 112) << 23) | (mantissa << 13);
  return std::bit_cast<float>(sign | bits);
}

}  // namespace ckplan
