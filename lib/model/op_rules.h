// What ckplan knows of each operator; the facts themselves are the rows of op_class.def.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/model/model_impl.h"

namespace ckplan {

enum class OpKind : uint8_t {
  kPlain,                  // Gradients flow from its float outputs to its float inputs.
  kElementwise,            // Also: an output may stand in place of an input of its shape.
  kAdd,                    // Also: the gradient of such an input is the output's own.
  kSub,                    // The same, for its first input alone.
  kNoGradient,             // No gradient flows.
  kNoGradientElementwise,  // Nor here; an output may stand in place of an input.
  kShapeOnly,              // Reads its input's shape, never its contents.
  kRandom,
  kRandomLike,  // Random, and reads its input's shape alone.
  kDropout,
  kBatchNorm,  // Its running statistics are neither read in training nor results of it.
  kRotary,     // The caches are partners of the input, never trained.
  kView,
  kCast,
  kCastLike,  // Reads its second input's type alone.
  kMayMoveNothing,
  kUnknown,  // Not in the table: cost by bytes, backward reads everything.
};

// The letters of op_class.def.
namespace reads {
inline constexpr uint16_t X = 1, V = 2, Y = 4, Z = 8, P = 16, I = 32, S = 64, D = 128;
}

// Tensors that a node saves for its own backward, with their sizes.
enum class Statistic : uint8_t {
  kNone,
  kChannelMoments,   // Mean and inverse deviation: 8 bytes a channel (axis 1).
  kRowMoments,       // The same for each normalised row.
  kRowScale,         // Inverse root mean square alone: 4 bytes a row.
  kInstanceMoments,  // 8 bytes for each sample and channel.
  kGroupMoments,     // 8 bytes for each sample and group.
  kPoolIndices,      // Of each output element: int32, under torch int64.
  kTopIndices,       // The operator's own int64 output.
  kDropoutMask,      // Torch on CPU: a float factor for each element. Minimal: none, the seed does.
  kRnnReserve,       // Gates and cell states; see StatisticBytes.
  kAttention,        // Probabilities; under torch the logarithm of their sums, 4 bytes a row.
};

// How flops are counted; `amount` elements of the operator's row are multiplied in.
enum class WorkKind : uint8_t {
  kMove,     // None: bytes alone.
  kInputs,   // For each element of the first input.
  kOutputs,  // For each element of the first output.
  kPool,     // For each output element and each element of its window.
  kConv,
  kConvTranspose,
  kGemm,
  kMatMul,
  kEinsum,
  kAttention,
  kRnn,  // The amount is the number of gates.
};

struct OpRule {
  std::string_view type;
  OpKind kind = OpKind::kUnknown;
  uint16_t minimal_reads = 0;
  uint16_t torch_reads = 0;
  Statistic statistic = Statistic::kNone;
  WorkKind work = WorkKind::kMove;
  int64_t amount = 0;

  bool is_elementwise() const {
    return kind == OpKind::kElementwise || kind == OpKind::kAdd || kind == OpKind::kSub ||
           kind == OpKind::kNoGradientElementwise || kind == OpKind::kDropout;
  }
  bool has_gradient() const {
    return kind != OpKind::kNoGradient && kind != OpKind::kNoGradientElementwise &&
           kind != OpKind::kShapeOnly && kind != OpKind::kRandom && kind != OpKind::kRandomLike;
  }
  bool is_random() const {
    return kind == OpKind::kRandom || kind == OpKind::kRandomLike || kind == OpKind::kDropout;
  }
};

// The operator's row, found by binary search; for one that is not in the table, a row of kind
// kUnknown.
const OpRule& RuleOf(const Operation& operation);

// Whether the operation reads the contents of this input, not its shape or type alone.
bool ReadsContents(const OpRule& rule, const Operation& operation, size_t input);

// Whether gradients flow to this input: a float that is no ratio, size or running statistic.
bool IsDifferentiable(const Model::Impl& model, const OpRule& rule, const Operation& operation,
                      size_t input);

// Whether the output is the input's tensor, bit for bit: views, casts to the same type, Dropout of
// ratio 0, and movements that move nothing.
bool IsView(const Model::Impl& model, const OpRule& rule, const Operation& operation);

}  // namespace ckplan
