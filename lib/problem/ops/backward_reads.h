// Finds which operands and saved statistics an operator's backward reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// PyTorch runs some operators in place, such as LeakyReLU(inplace=True). They overwrite their
// input, so this LeakyReLU saves its output instead of its input.

// The attribute of such an operator: 1, or 2 if it writes a view of another tensor.
inline constexpr std::string_view kInPlaceAttribute = "in_place";
inline constexpr int64_t kInPlaceOnView = 2;

inline bool IsInPlace(const OpSpec& spec) { return spec.Int(kInPlaceAttribute, 0) != 0; }
inline bool IsInPlaceOnView(const OpSpec& spec) {
  return spec.Int(kInPlaceAttribute, 0) == kInPlaceOnView;
}

struct BackwardReads {
  // Positions, ascending and unique; may include constants.
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;  // Positions.
  bool statistic = false;
};

// Applies the letters in the operator's row of op_table.def. `spec` must have a backward. Skips
// operands that are needed only for gradients that are not requested (Operand::has_gradient).
BackwardReads FindBackwardReads(const OpSpec& spec, Autograd autograd);

// Data that an operator saves for its own backward in addition to its outputs.

struct SavedStatistic {
  std::string_view suffix;  // Appended to the node's name: "bn1:moments".
  Bytes bytes;
};

// Returns nothing if the operator's backward needs no statistic, or if one of the operator's
// outputs serves as one. `is_stored` has a flag per output: whether it exists as a tensor, which is
// false for an output that is never read.
std::optional<SavedStatistic> StatisticOf(const OpSpec& spec, Autograd autograd,
                                          const std::vector<bool>& is_stored);

// Returns true if a Dropout's mask has one byte per element. Only PyTorch's fused kernel on a GPU
// writes such a mask, and not in place.
bool HasByteMask(const OpSpec& spec, Autograd autograd);

// Returns true if the operator's second output, when stored, replaces its statistic.
bool OutputServesAsStatistic(const OpSpec& spec);

}  // namespace ckplan
