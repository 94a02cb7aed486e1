// Restores operators that an exporter wrote for one PyTorch operation to that operation, because it
// decides what a training step saves: SiLU saves its input, but a Sigmoid and a Mul save two
// tensors.
//
//   Mul(x, Sigmoid(x))                                             Swish
//   Mul(x, HardSigmoid(x)), Mul(x, Tanh(Softplus(x)))              HardSwish, Mish
//   x / 2 (1 + Erf(x / sqrt 2))                                    Gelu
//   Where(x b > t, x, Softplus(x b) / b)                           Softplus
//   Mul(Elu(Mul(x, 1)), 1); Min(Max(x, low), high)                  Elu; Clip
//   ReduceMax or ReduceMin of PyTorch's max or min with indices     TopK
//   Mul(Sub(a, b), Sub(a, b)) of mse_loss                          with one difference
//   Reshape, InstanceNormalization, Reshape, Mul, Add              GroupNormalization
//
// Operators are restored only if the file's metadata says that they were one operation, or says
// nothing about any of them (origin.h): PyTorch runs hand-written formulas operator by operator.
//
// Only for PyTorch's autograd, because kernels need no more memory without these:
//
//   Where(IsNaN(p), 0, p) after a Softmax                          the Softmax
//   Add, Sub, Mul or Div that reads an Expand                      the same, of what is expanded
//   Mul(x, Cast(b)) of booleans that the exporter cast             Where(b, x, 0)
//   SoftmaxCrossEntropyLoss                                        LogSoftmax,
//                                                                  NegativeLogLikelihoodLoss
//   Log(Sigmoid(x)); Reciprocal(Sqrt(x))                           Softplus; Rsqrt
//   ReduceMean(Square(x - ReduceMean(x))) n / (n - 1)              ReduceVariance
//   the formula of a loss, and its mean or sum                     PointwiseLoss
//
// Losses are decomposed into operations before they are exported. They are restored if one line of
// Python made all of these.
//
// The last operator is replaced and keeps its name and place in the file; those before it lose
// their readers.
#pragma once

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/autograd.h"

namespace ckplan {

// Appends the restored operations to `model.restored`.
void RestoreOperators(Model::Impl& model, Autograd autograd);

}  // namespace ckplan
