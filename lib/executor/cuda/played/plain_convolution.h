// Convolutions in plain loops, with sums in double precision. Only tests use them.
#pragma once

#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

// Does one pass of the convolution: reads two of the tensors and writes the third.
void RunPlainConvolution(const ConvolutionShape& shape, ConvPass pass, void* x, void* w, void* y);

}  // namespace ckplan::cuda
