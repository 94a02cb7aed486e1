// Functions of one float, with the names of the C library, which both compilers provide.
#pragma once

#include <math.h>

#include "lib/cuda/kernel.h"

namespace ckplan::cuda {

CKPLAN_DEVICE inline float Exp(float x) { return expf(x); }
CKPLAN_DEVICE inline float Tanh(float x) { return tanhf(x); }
CKPLAN_DEVICE inline float Erf(float x) { return erff(x); }
CKPLAN_DEVICE inline float Sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
// Returns log(1 + e^x) without overflow.
CKPLAN_DEVICE inline float Softplus(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

}  // namespace ckplan::cuda
