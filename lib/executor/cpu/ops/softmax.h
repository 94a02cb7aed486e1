// Softmax of one row, for the operator itself and for attention.
#pragma once

#include <cstdint>

namespace ckplan::cpu {

// Returns the maximum, or NaN if any element is NaN.
float MaxElement(const float* x, int64_t size);

// y may alias x. A row that is all -infinity gives NaN, as the definition implies.
void SoftmaxRow(const float* x, float* y, int64_t size);
void LogSoftmaxRow(const float* x, float* y, int64_t size);

// dx may alias dy.
void SoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size);
void LogSoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size);

}  // namespace ckplan::cpu
