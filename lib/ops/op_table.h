// What ckplan knows of each operator of ONNX; the facts themselves are the rows of op_table.def.
//
// Planner, executor and tests ask here and in the files beside it, which derive more from a row and
// the operands of one operator: op_rules.h, backward_reads.h, statistics.h, work.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/ops/autograd.h"

namespace ckplan {

enum class OpKind : uint8_t {
  kPlain,                  // Gradients flow from its float outputs to its float inputs.
  kElementwise,            // Also: an output may stand in place of an input of its shape.
  kAdd,                    // Also: the gradient of such an input is the output's own.
  kSub,                    // Like kAdd, but only the first input takes the output's gradient.
  kNoGradient,             // No gradient flows.
  kNoGradientElementwise,  // No gradient flows; an output may stand in place of an input.
  kShapeOnly,              // Reads its input's shape, never its contents.
  kLiteral,                // Contents that are written into the file.
  kFill,                   // One number, as often as its input's shape says.
  kRandom,
  kRandomLike,  // Random, and reads its input's shape alone.
  kDropout,
  kBatchNorm,  // Its running statistics are neither read in training nor results of it.
  kView,
  kCast,
  kCastLike,  // Reads its second input's type alone.
  // Movements, which are views where they move nothing.
  kTranspose,
  kSlice,
  kPad,
  kConcat,
  kMoveBySize,  // Moves nothing where the output has its input's shape.
  kUnknown,     // Not in the table: cost by bytes, backward reads everything.
};

// The letters of op_table.def.
namespace reads {
inline constexpr uint16_t X = 1, V = 2, Y = 4, Z = 8, P = 16, I = 32, S = 64, Q = 128, E = 256;
}

// What else is true of an operator.
namespace traits {
inline constexpr uint16_t kFirstOnly = 1 << 0;    // Gradients flow to its first input alone.
inline constexpr uint16_t kAllPartners = 1 << 1;  // P means all of its inputs, not the first two.
inline constexpr uint16_t kPicks = 1 << 2;  // Reads as much of its first input as it puts out.
inline constexpr uint16_t kViewIfAlone = 1 << 3;  // With one operand, its output is that operand.
// It exists to apply weights: any constant operand is one, of whatever size.
inline constexpr uint16_t kWeights = 1 << 4;
// A vector that is written into the file and added or multiplied in here is a weight.
inline constexpr uint16_t kVectors = 1 << 5;
// Makes tables of sines from constant frequencies, which are not trained.
inline constexpr uint16_t kWave = 1 << 6;
// Its second input scales, and its third shifts, what it has normalised.
inline constexpr uint16_t kNormalisation = 1 << 7;
inline constexpr uint16_t kActivation = 1 << 8;     // An activation function.
inline constexpr uint16_t kProduct = 1 << 9;        // A layer's convolution or matrix product.
inline constexpr uint16_t kJoinsProduct = 1 << 10;  // Scales or shifts such a product's result.
// Costs next to nothing beside a convolution, as activations and normalisations do, too.
inline constexpr uint16_t kCheap = 1 << 11;
inline constexpr uint16_t kCostly = 1 << 12;  // A product, although `work` counts none.
}  // namespace traits

// Tensors that a node saves for its own backward, with their sizes.
enum class Statistic : uint8_t {
  kNone,
  kChannelMoments,   // Mean and inverse deviation: 8 bytes for each channel (axis 1).
  kRowMoments,       // Mean and inverse deviation: 8 bytes for each normalised row.
  kRowScale,         // Inverse root mean square alone: 4 bytes for each normalised row.
  kInstanceMoments,  // 8 bytes for each sample and channel.
  kGroupMoments,     // 8 bytes for each sample and group.
  kPoolIndices,      // An index for each output element: int32, under torch int64.
  kTopIndices,       // The operator's own int64 output.
  kDropoutMask,      // Torch on CPU: a float factor for each element. Minimal: none, the seed does.
  kLstmReserve,      // Four gates and the cell of each step; see statistics.cc.
  kGruReserve,       // Three gates and the recurrent part of the candidate.
  kRnnReserve,       // No more than the states themselves.
  kAttention,  // Probabilities; under torch the logarithm of their sums, 4 bytes for each row.
};

// How flops are counted; `amount` elements of the operator's row are multiplied in.
enum class WorkKind : uint8_t {
  kMove,     // None: bytes alone.
  kInputs,   // For each element of the first input.
  kOutputs,  // For each element of the first output.
  kPool,     // For each output element and each element of its window.
  // From here on they run on matrix units.
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
  uint16_t traits = 0;

  bool has(uint16_t trait) const { return (traits & trait) != 0; }
  bool is_known() const { return kind != OpKind::kUnknown; }
  uint16_t reads(Autograd autograd) const {
    return autograd == Autograd::kTorch ? torch_reads : minimal_reads;
  }
  // An output may stand in place of an input of its shape.
  bool is_elementwise() const;
  bool has_gradient() const;
  bool is_random() const;
  // The elements of its first input, as they are, in another place, order, shape or type.
  bool is_movement() const;
  bool uses_matrix_units() const { return work >= WorkKind::kConv; }
  bool is_convolution() const {
    return work == WorkKind::kConv || work == WorkKind::kConvTranspose;
  }
  bool is_cheap() const {
    return has(traits::kActivation | traits::kNormalisation | traits::kCheap);
  }
  bool is_costly() const { return uses_matrix_units() || has(traits::kCostly); }
};

// In alphabetical order.
std::span<const OpRule> AllOpRules();

// The operator's row, found by binary search; for one that is not in the table, and so for all
// outside ONNX's own domain, a row of kind kUnknown.
const OpRule& RuleOf(std::string_view type);

// Graphs that were not read from ONNX may spell operators as other frameworks do: "relu", "Silu".
// The row of the operator that is meant.
const OpRule& RuleOfSpelling(std::string_view name);

// Whether a backend that runs the operator can be asked for its gradient.
bool HasGradient(std::string_view type);

}  // namespace ckplan
