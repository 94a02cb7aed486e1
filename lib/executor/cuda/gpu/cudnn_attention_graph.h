// The graphs of operations by which cuDNN is asked for attention, forward and backward. Its engines
// for fused attention know these graphs, operation by operation, as NVIDIA's cudnn-frontend
// composes them.
//
//   forward     S = Q Kᵀ, scale, bias, mask;  m = max S, e = exp(S - m), s = Σ e;
//               log_sums = m + log s;  Y = (e / s) V
//   backward    dots = Σ dY Y;  P = exp(S - log_sums), which is masked last;
//               dV = Pᵀ dY;  dS = (dY Vᵀ - dots) P scale;  dK = dSᵀ Q;  dQ = dS K
//
// dQ is the result of one product, not of an accumulator that blocks add to in any order: this is
// how a deterministic engine is asked for. Such an engine keeps dS in its workspace.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/executor/cuda/attention_library.h"
#include "lib/executor/cuda/gpu/cudnn_engines.h"

namespace ckplan::cuda {

// The ids by which a variant pack names the tensors. The last ones are numbers on the host, but for
// kIdOfDots, which are float32 [batch, heads, queries] in the workspace.
enum AttentionId : int64_t {
  kIdOfQ = 1,
  kIdOfK,
  kIdOfV,
  kIdOfOutput,
  kIdOfLogSums,
  kIdOfBias,
  kIdOfDy,
  kIdOfDq,
  kIdOfDk,
  kIdOfDv,
  kIdOfDots,
  kIdOfScale,
  kIdOfHidden,  // -infinity
  kIdOfOne,
};

// kUnsupported: cuDNN refuses a descriptor; the message has its reason.
Result<CudnnDescriptor> DescribeAttention(const CudnnApi& api, const CudnnTarget& target,
                                          const LibraryAttentionShape& shape, AttentionPass pass);

}  // namespace ckplan::cuda
