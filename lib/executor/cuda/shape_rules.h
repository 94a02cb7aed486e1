// What the CUDA backend decides from operator shapes: the element orders of tensors, and which
// consecutive operators run as one kernel.
//
//   a chain    BatchNormalization or an elementwise operator, then elementwise operators, all with
//              results of one shape: the kernel reads each operand once, and writes those results
//              that are needed later
//   scores     Add of a mask, then Softmax: a warp holds the row in between
//
// The rules need no kernels, so they are tested without a CUDA toolkit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

// True if a product or convolution takes its factors as bfloat16.
inline bool MultipliesHalves(const OpSpec& spec) {
  return spec.input(0).type == ElementType::kBFloat16 ||
         spec.input(1).type == ElementType::kBFloat16 ||
         spec.output(0).type == ElementType::kBFloat16;
}

// bfloat16 convolutions accept a separate order for each tensor, and tensor cores prefer
// channels-last. BatchNormalization, pools, elementwise operators, Concat and Slice need the same
// order for all their tensors.
ElementOrders OrdersOf(const OpSpec& spec);

// True if padding both sides by `begin` gives the output size, which cuDNN derives itself.
bool FitsEvenPads(const Window& window);

enum class LinkKind : uint8_t {
  kBatchNorm,  // Only as the first link.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kRelu,
  kGeluErf,
  kGeluTanh,
  kTanh,
  kSquare,
  kCube,
  kDropout,
  kIsNan,
  kWhere,  // The carried value is the condition.
};

// How an operand is indexed for element i of a chain's result.
enum class LinkOperand : uint8_t {
  kNone,
  kWhole,   // Element i.
  kScalar,  // One element.
  kInner,   // Element i modulo the length of the last axis.
};

struct ChainLink {
  LinkKind kind = LinkKind::kAdd;
  size_t position = 0;  // The position of the operand that is not carried.
  LinkOperand operand = LinkOperand::kNone;
};

// Maximum number of links in a chain: a kernel's arguments are limited to 4 KiB.
inline constexpr size_t kMaxLinks = 12;
// Maximum number of axes of a mask that is added to scores, after merging adjacent axes.
inline constexpr size_t kMaxMaskAxes = 8;

// Returns the links of the longest prefix of `ops` that is a chain; fewer than two if there is
// none. The first operator has no carried input; its input with the chain's shape is used instead.
std::vector<ChainLink> LinksOf(std::span<const ChainedOp> ops);
// Returns the position of the input that the first link starts with.
size_t FirstInput(const OpSpec& first);

// True for the Add of a mask followed by a Softmax whose rows fit in a warp.
bool AreScores(std::span<const ChainedOp> ops);

// Returns how many of the operators run as one.
size_t FusibleLength(std::span<const ChainedOp> ops);

}  // namespace ckplan::cuda
