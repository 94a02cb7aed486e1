// Exponentials and related functions in a form that compilers vectorise: no branches, tables or
// calls. The error is within a few units in the last place of float32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "lib/executor/cpu/parallel.h"

namespace ckplan::cpu {

// Computes e^x by the method of Cody and Waite: e^x = 2^n e^r with |r| <= ln(2)/2, and e^r by a
// polynomial (Cephes, expf). Returns 0 below -87.3 and infinity above 88.7, where the result is not
// a normal float.
inline float Exp(float x) {
  const float clamped = std::min(std::max(x, -87.3F), 88.7F);
  // Adding 1.5 * 2^23 rounds to the nearest integer, which is then in the low bits.
  const float shifted = clamped * 1.44269504088896341F + 12582912.0F;
  const float n = shifted - 12582912.0F;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // 2^n is computed as two factors, because n may be 128, which exceeds the exponent range.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(12582912.0F);
  const int32_t half = exponent >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23);
  const float high = std::bit_cast<float>((exponent - half + 127) << 23);
  float result = p * low * high;
  result = x < -87.3F ? 0.0F : result;
  result = x > 88.7F ? HUGE_VALF : result;
  return x == x ? result : x;
}

inline float Sigmoid(float x) { return 1.0F / (1.0F + Exp(-x)); }

// Uses a rational minimax approximation, as in Eigen.
inline float Tanh(float x) {
  const float c = std::min(std::max(x, -7.90531110763549805F), 7.90531110763549805F);
  const float s = c * c;
  float p = -2.76076847742355e-16F;
  p = p * s + 2.00018790482477e-13F;
  p = p * s - 8.60467152213735e-11F;
  p = p * s + 5.12229709037114e-08F;
  p = p * s + 1.48572235717979e-05F;
  p = p * s + 6.37261928875436e-04F;
  p = p * s + 4.89352455891786e-03F;
  float q = 1.19825839466702e-06F;
  q = q * s + 1.18534705686654e-04F;
  q = q * s + 2.26843463243900e-03F;
  q = q * s + 4.89352518554385e-03F;
  return x == x ? c * p / q : x;
}

inline float Erf(float x) {
  const float c = std::min(std::max(x, -4.0F), 4.0F);
  const float s = c * c;
  float p = -2.72614225801306e-10F;
  p = p * s + 2.77068142495902e-08F;
  p = p * s - 2.10102402082508e-06F;
  p = p * s - 5.69250639462346e-05F;
  p = p * s - 7.34990630326855e-04F;
  p = p * s - 2.95459980854025e-03F;
  p = p * s - 1.60960333262415e-02F;
  float q = -1.45660718464996e-05F;
  q = q * s - 2.13374055278905e-04F;
  q = q * s - 1.68282697438203e-03F;
  q = q * s - 7.37332916720468e-03F;
  q = q * s - 1.42647390514189e-02F;
  return x == x ? c * p / q : x;
}

// Computes log(1 + z) for z in [0, 1] as twice the series of the inverse hyperbolic tangent of z /
// (2 + z), which is at most 1/3.
inline float Log1pOfFraction(float z) {
  const float t = z / (2.0F + z);
  const float s = t * t;
  float p = 1.0F / 15;
  p = p * s + 1.0F / 13;
  p = p * s + 1.0F / 11;
  p = p * s + 1.0F / 9;
  p = p * s + 1.0F / 7;
  p = p * s + 1.0F / 5;
  p = p * s + 1.0F / 3;
  p = p * s + 1.0F;
  return 2.0F * t * p;
}

// Returns log(1 + e^x).
inline float Softplus(float x) { return std::max(x, 0.0F) + Log1pOfFraction(Exp(-std::abs(x))); }

// The parameter Math of the functions in lib/executor/scalar.
struct VectorMath {
  static float Exp(float x) { return cpu::Exp(x); }
  static float Tanh(float x) { return cpu::Tanh(x); }
  static float Erf(float x) { return cpu::Erf(x); }
  static float Sigmoid(float x) { return cpu::Sigmoid(x); }
  static float Softplus(float x) { return cpu::Softplus(x); }
};

// Long sums of floats: fast, precise, and bitwise equal for any alignment.

// Returns term(0) + ... + term(count - 1). Sixteen running float sums suit vector instructions, and
// are added up in double before they lose precision. The lanes are explicit because a compiler that
// vectorises a plain loop may start at an aligned address and so change the order of additions.
template <typename Term>
double SumTerms(int64_t count, const Term& term) {
  constexpr int64_t kLanes = 16;
  constexpr int64_t kBlock = 2048;
  double sum = 0;
  int64_t i = 0;
  while (i + kLanes <= count) {
    const int64_t end = std::min(count - kLanes, i + kBlock);
    float lanes[kLanes] = {};
    for (; i <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
    }
    for (const float lane : lanes) sum += static_cast<double>(lane);
  }
  for (; i < count; ++i) sum += static_cast<double>(term(i));
  return sum;
}

inline double Sum(const float* values, int64_t count) {
  return SumTerms(count, [values](int64_t i) { return values[i]; });
}

// Column sums of a row-major matrix of terms, for gradients of biases and scales.

// Computes result[c] = the sum over rows of term(row, c). Small groups of rows are summed in float
// and their sums in double, so that long columns keep their precision.
template <typename Term>
void SumColumns(int64_t rows, int64_t columns, float* result, const Term& term) {
  constexpr int64_t kColumns = 64;
  constexpr int64_t kRows = 32;
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * kColumns));
  ParallelFor(blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * kColumns; first < std::min(end * kColumns, columns);
         first += kColumns) {
      const int64_t count = std::min(kColumns, columns - first);
      double sums[kColumns] = {};
      for (int64_t top = 0; top < rows; top += kRows) {
        float group[kColumns] = {};
        for (int64_t row = top; row < std::min(rows, top + kRows); ++row) {
          for (int64_t c = 0; c < count; ++c) group[c] += term(row, first + c);
        }
        for (int64_t c = 0; c < count; ++c) sums[c] += static_cast<double>(group[c]);
      }
      for (int64_t c = 0; c < count; ++c) result[first + c] = static_cast<float>(sums[c]);
    }
  });
}

}  // namespace ckplan::cpu

// An attribute for functions that consist of one loop over many floats. Such a function is compiled
// for each vector width, and the program selects the widest one that the processor supports when it
// starts. Results may differ in the last bit between processors, but not between runs on one.

// Sanitizers are initialised too late for this selection.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(CKPLAN_SANITIZED)
#define CKPLAN_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CKPLAN_VECTOR_CLONES
#endif
