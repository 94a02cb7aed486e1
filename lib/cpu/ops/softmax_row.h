// Softmax of one row, for the operator itself and for attention.
#pragma once

#include <cstdint>

namespace ckplan::cpu {

// The greatest; NaN if there is one.
float HighestOf(const float* x, int64_t size);

// y may be x. A row of nothing but -infinity gives NaN, as its definition does.
void SoftmaxRow(const float* x, float* y, int64_t size);
void LogSoftmaxRow(const float* x, float* y, int64_t size);

// dx may be dy.
void SoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size);
void LogSoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size);

}  // namespace ckplan::cpu
