#include "lib/executor/cpu/ops/softmax_row.h"

#include <cmath>
#include <limits>

#include "lib/executor/cpu/sum.h"
#include "lib/executor/cpu/vector_clones.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

CKPLAN_VECTOR_CLONES
float HighestOf(const float* x, int64_t size) {
  constexpr int64_t kLanes = 16;
  float lanes[kLanes];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  const auto higher = [](float a, float b) { return b > a || b != b ? b : a; };
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = higher(lanes[lane], x[i + lane]);
  }
  for (; i < size; ++i) lanes[0] = higher(lanes[0], x[i]);
  float highest = lanes[0];
  for (const float lane : lanes) highest = higher(highest, lane);
  return highest;
}

CKPLAN_VECTOR_CLONES
void SoftmaxRow(const float* x, float* y, int64_t size) {
  const float highest = HighestOf(x, size);
  for (int64_t i = 0; i < size; ++i) y[i] = Exp(x[i] - highest);
  const auto factor = static_cast<float>(1 / Sum(y, size));
  for (int64_t i = 0; i < size; ++i) y[i] *= factor;
}

CKPLAN_VECTOR_CLONES
void LogSoftmaxRow(const float* x, float* y, int64_t size) {
  const float highest = HighestOf(x, size);
  const double sum = SumTerms(size, [x, highest](int64_t i) { return Exp(x[i] - highest); });
  const auto log_sum = static_cast<float>(std::log(sum));
  for (int64_t i = 0; i < size; ++i) y[i] = (x[i] - highest) - log_sum;
}

CKPLAN_VECTOR_CLONES
void SoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size) {
  const auto sum = static_cast<float>(SumTerms(size, [y, dy](int64_t i) { return y[i] * dy[i]; }));
  for (int64_t i = 0; i < size; ++i) dx[i] = y[i] * (dy[i] - sum);
}

CKPLAN_VECTOR_CLONES
void LogSoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size) {
  const auto sum = static_cast<float>(Sum(dy, size));
  for (int64_t i = 0; i < size; ++i) dx[i] = dy[i] - Exp(y[i]) * sum;
}

}  // namespace ckplan::cpu
