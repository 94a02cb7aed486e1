// Functions of one float, with the names of the C library, which both compilers provide.
#pragma once

#include <math.h>

#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

CKPLAN_DEVICE inline float Exp(float x) { return expf(x); }
CKPLAN_DEVICE inline float Tanh(float x) { return tanhf(x); }
CKPLAN_DEVICE inline float Erf(float x) { return erff(x); }
CKPLAN_DEVICE inline float Sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
// Returns log(1 + e^x) without overflow.
CKPLAN_DEVICE inline float Softplus(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

// The parameter Math of the functions of lib/scalar.
struct DeviceMath {
  CKPLAN_DEVICE static float Exp(float x) { return cuda::Exp(x); }
  CKPLAN_DEVICE static float Tanh(float x) { return cuda::Tanh(x); }
  CKPLAN_DEVICE static float Erf(float x) { return cuda::Erf(x); }
  CKPLAN_DEVICE static float Sigmoid(float x) { return cuda::Sigmoid(x); }
  CKPLAN_DEVICE static float Softplus(float x) { return cuda::Softplus(x); }
};

}  // namespace ckplan::cuda
