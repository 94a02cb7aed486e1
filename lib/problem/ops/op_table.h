// What ckplan knows of each ONNX operator; the facts themselves are the rows of op_table.def.
//
// backward_reads.h and work.h derive more from a row and the operands of one operator. The planner,
// the executor and the tests all use these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

enum class OpKind : uint8_t {
  kPlain,  // Gradients flow from its float outputs to its float inputs.
  // Like kPlain, but an output may take the memory of an input of the same shape.
  kElementwise,
  // Like kElementwise, but the gradient of such an input also equals the output's gradient.
  kAdd,
  kSub,                    // Like kAdd, but only the first input's gradient equals the output's.
  kNoGradient,             // No gradient flows.
  kNoGradientElementwise,  // No gradient flows; an output may take the memory of an input.
  kShapeOnly,              // Reads its input's shape, never its contents.
  kLiteral,                // The contents are stored in the model file.
  // Repeats one number; the contents of the input are the shape of the output.
  kFill,
  kRandom,
  kRandomLike,  // Draws random numbers, and reads only the shape of its input.
  kDropout,
  kBatchNorm,  // Running statistics are neither read nor written in training.
  kView,
  kCast,
  kCastLike,  // Reads only the type of its second input.
  // Data movements, which are views where they move nothing.
  kTranspose,
  kSlice,
  kPad,
  kConcat,
  kMoveBySize,  // Moves nothing if the output has the same shape as the input.
  kUnknown,     // Not in the table: its cost is its memory traffic, and backward reads everything.
};

// The letters of op_table.def, as bits.
namespace reads {
inline constexpr uint16_t X = 1, V = 2, Y = 4, Z = 8, P = 16, I = 32, S = 64, Q = 128, E = 256;
}

// Further properties of an operator, as bits.
namespace traits {
inline constexpr uint16_t kFirstOnly = 1 << 0;  // Gradients flow to the first input alone.
// The letter P means all inputs, not the first two.
inline constexpr uint16_t kAllPartners = 1 << 1;
// Reads as many elements of its first input as it writes.
inline constexpr uint16_t kPicks = 1 << 2;
// With a single operand, the output is a view of that operand.
inline constexpr uint16_t kViewIfAlone = 1 << 3;
// The operator exists to apply weights: every constant operand is a weight, whatever its size.
inline constexpr uint16_t kWeights = 1 << 4;
// A constant vector in the model file that this operator adds or multiplies is a weight.
inline constexpr uint16_t kVectors = 1 << 5;
// Computes tables of sines from constant frequencies, which are not trained.
inline constexpr uint16_t kWave = 1 << 6;
// The second input scales, and the third shifts, the normalised values.
inline constexpr uint16_t kNormalisation = 1 << 7;
inline constexpr uint16_t kActivation = 1 << 8;  // An activation function.
inline constexpr uint16_t kProduct = 1 << 9;     // The convolution or matrix product of a layer.
// Scales or shifts the result of such a product.
inline constexpr uint16_t kJoinsProduct = 1 << 10;
// Costs little compared with a convolution. Activations and normalisations are cheap without this
// bit.
inline constexpr uint16_t kCheap = 1 << 11;
inline constexpr uint16_t kCostly = 1 << 12;  // A product, although `work` counts no FLOPs for it.
// Rounds its first input. The derivative is zero, and straight-through estimation takes that of the
// identity.
inline constexpr uint16_t kRounds = 1 << 13;
}  // namespace traits

// What a node saves for its own backward, with its size.
enum class Statistic : uint8_t {
  kNone,
  kChannelMoments,   // Mean and inverse standard deviation of each channel (axis 1): 8 bytes each.
  kRowMoments,       // Mean and inverse standard deviation of each normalised row: 8 bytes each.
  kRowScale,         // Only the inverse root mean square of each normalised row: 4 bytes each.
  kInstanceMoments,  // 8 bytes for each sample and channel.
  kGroupMoments,     // 8 bytes for each sample and group.
  kPoolIndices,      // An index for each output element: int32, or int64 under kTorch.
  kTopIndices,       // The indices that the operator returns as its int64 output.
  // Under kTorch a float for each element. Under kMinimal nothing: the seed suffices.
  kDropoutMask,
  kLstmReserve,  // Four gates and the cell state of each step; see backward_reads.cc.
  kGruReserve,   // Three gates and the recurrent part of the candidate state.
  kRnnReserve,   // Nothing but the hidden states themselves.
  kAttention,    // The probabilities; under kTorch the logarithm of each row's sum, 4 bytes a row.
  kLogSums,      // The logarithm of each row's sum of exponentials, 4 bytes a row.
};

// How FLOPs are counted. The count is multiplied by the `amount` of the operator's row.
enum class WorkKind : uint8_t {
  kMove,     // No FLOPs: only memory traffic counts.
  kInputs,   // Counts the elements of the first input.
  kOutputs,  // Counts the elements of the first output.
  kPool,     // Counts the window's elements for each output element.
  // All kinds from here on run on matrix units.
  kConv,
  kConvTranspose,
  kGemm,
  kMatMul,
  kEinsum,
  kAttention,
  kRnn,  // `amount` is the number of gates.
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
    return IsTorch(autograd) ? torch_reads : minimal_reads;
  }
  // Returns whether an output may take the memory of an input of the same shape.
  bool is_elementwise() const;
  bool has_gradient() const;
  bool is_random() const;
  // Returns whether the output has the elements of the first input, unchanged, in another place,
  // order, shape or type.
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

// The rows are in alphabetical order.
std::span<const OpRule> AllOpRules();

// Returns the operator's row, found by binary search. An operator that is not in the table, which
// includes every operator outside ONNX's own domain, gets a row of kind kUnknown.
const OpRule& RuleOf(std::string_view type);

// Returns the row of an operator whose name may be spelled as in other frameworks ("relu", "Silu"),
// because graphs that were not read from ONNX use such names.
const OpRule& RuleOfSpelling(std::string_view name);

// Returns whether backends that can run the operator can also compute its gradient.
bool HasGradient(std::string_view type);

// Properties of one operator that follow from its row in the table and its operands.

// Returns whether the operator reads the contents of this input, not only its shape or type.
bool ReadsContents(const OpRule& rule, size_t input);

// Returns whether gradients flow to this input: it is a float and not a ratio, a size or a running
// statistic.
bool IsDifferentiable(const OpRule& rule, const OpSpec& spec, size_t input);
bool IsDifferentiable(const OpSpec& spec, size_t input);

// Returns whether a gradient that arrives at this output flows on. The gradient of a Dropout's
// mask, which is a float before opset 10, does not.
bool PassesGradient(const OpRule& rule, size_t output);

// Returns whether the output shares the memory of the input, unchanged: views, casts to the same
// type, Dropout with ratio 0, and data movements that move nothing.
bool IsView(const OpRule& rule, const OpSpec& spec);

}  // namespace ckplan
