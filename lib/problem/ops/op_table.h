// What ckplan knows about each ONNX operator: the rows of op_table.def. backward_reads.h and work.h
// derive more from a row and an operator's operands.
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
  // Like kPlain, but an output may reuse the memory of an input of the same shape.
  kElementwise,
  // Like kElementwise, but the gradient of such an input also equals the output's gradient.
  kAdd,
  kSub,                    // Like kAdd, but only the first input's gradient equals the output's.
  kNoGradient,             // No gradient flows.
  kNoGradientElementwise,  // No gradient flows; an output may reuse the memory of an input.
  kShapeOnly,              // Reads its input's shape, not its contents.
  kLiteral,                // The model file holds the contents.
  // Repeats one number; the input holds the shape of the output.
  kFill,
  kRandom,
  kRandomLike,  // Draws random numbers, and reads only the shape of its input.
  kDropout,
  kBatchNorm,  // Training neither reads nor writes running statistics.
  kView,
  kCast,
  kCastLike,  // Reads only the type of its second input.
  // Data movements; they are views if they move nothing.
  kTranspose,
  kSlice,
  kPad,
  kConcat,
  kMoveBySize,  // Moves nothing if the output has the same shape as the input.
  kUnknown,     // Not in the table: costs its memory traffic, and backward reads everything.
};

// The letters of op_table.def, as bits.
namespace reads {
inline constexpr uint16_t X = 1, V = 2, Y = 4, Z = 8, P = 16, I = 32, S = 64, Q = 128, E = 256;
}

// Further properties of an operator, as bits.
namespace traits {
inline constexpr uint16_t kFirstOnly = 1 << 0;  // Gradients flow only to the first input.
// The letter P means all inputs, not just the first two.
inline constexpr uint16_t kAllPartners = 1 << 1;
// Reads as many elements of its first input as it writes.
inline constexpr uint16_t kPicks = 1 << 2;
// With a single input, the output is a view of it.
inline constexpr uint16_t kViewIfAlone = 1 << 3;
// Every constant operand is a weight, regardless of its size.
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
// Costs little compared with a convolution. Activations and normalisations are always cheap.
inline constexpr uint16_t kCheap = 1 << 11;
inline constexpr uint16_t kCostly = 1 << 12;  // A product for which `work` counts no FLOPs.
// Rounds its first input: the derivative is 0, or 1 with straight-through estimation.
inline constexpr uint16_t kRounds = 1 << 13;
}  // namespace traits

// The data that a node saves for its own backward.
enum class Statistic : uint8_t {
  kNone,
  kChannelMoments,   // Mean and inverse standard deviation of each channel (axis 1): 8 bytes each.
  kRowMoments,       // Mean and inverse standard deviation of each normalised row: 8 bytes each.
  kRowScale,         // The inverse root mean square of each normalised row: 4 bytes each.
  kInstanceMoments,  // 8 bytes for each sample and channel.
  kGroupMoments,     // 8 bytes for each sample and group.
  kPoolIndices,      // An index per output element: int32, or int64 with kTorch.
  kTopIndices,       // The indices, which are also the operator's int64 output.
  // With kTorch, a float per element. With kMinimal nothing, since the seed suffices.
  kDropoutMask,
  kLstmReserve,  // Four gates and the cell state of each step; see backward_reads.cc.
  kGruReserve,   // Three gates and the recurrent part of the candidate state.
  kRnnReserve,   // Only the hidden states.
  kAttention,    // The probabilities; with kTorch the logarithm of each row's sum, 4 bytes a row.
  kLogSums,      // The logarithm of each row's sum of exponentials, 4 bytes a row.
};

// How FLOPs are counted: this count times the `amount` in the operator's row.
enum class WorkKind : uint8_t {
  kMove,     // No FLOPs, only memory traffic.
  kInputs,   // The elements of the first input.
  kOutputs,  // The elements of the first output.
  kPool,     // The window's elements for each output element.
  // The kinds below run on matrix units.
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
  // Returns true if an output may reuse the memory of an input of the same shape.
  bool is_elementwise() const;
  bool has_gradient() const;
  bool is_random() const;
  // Returns true if the output only copies, reorders, reshapes or casts elements of the first
  // input.
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

// Returns the operator's row, or a row of kind kUnknown for operators that are not in the table.
const OpRule& RuleOf(std::string_view type);

// Also accepts names of other frameworks ("relu", "Silu"), which graphs from other sources use.
const OpRule& RuleOfSpelling(std::string_view name);

// Returns true if backends that run the operator can also compute its gradient.
bool HasGradient(std::string_view type);

// ---- Properties that follow from an operator's row and its operands ----

// Returns true if the operator reads the contents of this input, not only its shape or type.
bool ReadsContents(const OpRule& rule, size_t input);

// Returns true if gradients flow to this input. They do not flow to integers, ratios, sizes and
// running statistics.
bool IsDifferentiable(const OpRule& rule, const OpSpec& spec, size_t input);
bool IsDifferentiable(const OpSpec& spec, size_t input);

// Returns true if this output passes gradients on. A Dropout's mask, which is a float before opset
// 10, does not.
bool PassesGradient(const OpRule& rule, size_t output);

// Returns true if the output shares the input's memory, unchanged: views, casts to the same type,
// Dropout with ratio 0, and data movements that move nothing.
bool IsView(const OpRule& rule, const OpSpec& spec);

}  // namespace ckplan
