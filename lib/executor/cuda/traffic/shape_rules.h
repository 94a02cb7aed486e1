// What the CUDA backend decides from the shapes of operators: in which orders of elements they take
// their tensors, and which operators that follow each other are run as one kernel.
//
//   a chain    BatchNormalization or an elementwise operator, then elementwise operators, all with
//              results of one shape: the kernel reads each operand once, and writes those results
//              that are needed later
//   scores     Add of a mask, then Softmax: a warp holds the row in between
//
// The rules need no kernels, so they are tested without a toolkit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

// Whether a product or convolution takes its factors as bfloat16.
inline bool MultipliesHalves(const OpSpec& spec) {
  return spec.input(0).type == ElementType::kBFloat16 ||
         spec.input(1).type == ElementType::kBFloat16 ||
         spec.output(0).type == ElementType::kBFloat16;
}

// Convolutions of bfloat16 take each of their tensors in either order, and tensor cores want the
// channels last. Normalisations of batches, pools, elementwise operators, Concat and Slice take
// all of theirs alike.
ElementOrders OrdersOf(const OpSpec& spec);

// Returns whether padding both sides by `begin` gives the output size, which cuDNN derives itself.
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

// How an operand is read beside a result of the chain.
enum class LinkOperand : uint8_t {
  kNone,
  kWhole,   // Element i.
  kScalar,  // One element.
  kInner,   // Element i modulo the length of the last axis.
};

struct ChainLink {
  LinkKind kind = LinkKind::kAdd;
  size_t position = 0;  // Where the operand is that is not carried.
  LinkOperand operand = LinkOperand::kNone;
};

// The most links of one chain: the arguments of a kernel are limited to 4 KiB.
inline constexpr size_t kMaxLinks = 12;
// The most axes of a mask that is added to scores, after adjacent axes are merged.
inline constexpr size_t kMaxMaskAxes = 8;

// Returns the links of the longest beginning of `ops` that is a chain; fewer than two: none is.
// The first operator has no carried input: its input of the chain's shape is taken for it.
std::vector<ChainLink> LinksOf(std::span<const ChainedOp> ops);
// Returns the position of the input that the first link of a chain begins with.
size_t FirstInput(const OpSpec& first);

// Whether these two operators are the Add of a mask and a Softmax of rows that a warp holds.
bool AreScores(std::span<const ChainedOp> ops);

// Returns how many of the operators run as one.
size_t FusibleLength(std::span<const ChainedOp> ops);

}  // namespace ckplan::cuda
