// What backward reads of an operator: its operands, and the statistics that forward saves.
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

// Operations that PyTorch runs in place, such as LeakyReLU(inplace=True).
//
// Their input is lost. So a LeakyReLU in place saves its output, where the same LeakyReLU out of
// place saves its input.

// The attribute of an operator that was run in place: 1, or 2 where it wrote a view of another
// tensor.
inline constexpr std::string_view kInPlaceAttribute = "in_place";
inline constexpr int64_t kInPlaceOnView = 2;

inline bool IsInPlace(const OpSpec& spec) { return spec.Int(kInPlaceAttribute, 0) != 0; }
inline bool IsInPlaceOnView(const OpSpec& spec) {
  return spec.Int(kInPlaceAttribute, 0) == kInPlaceOnView;
}

// Finds which operands an operator's backward reads, from the letters in its row of op_table.def.

struct BackwardReads {
  // Positions, ascending and without repetition. Constants may be among them.
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;  // Positions.
  bool statistic = false;
};

// `spec` must have a backward. Operands that are needed only for gradients that are not requested
// (see Operand::has_gradient of the inputs) are left out.
BackwardReads FindBackwardReads(const OpSpec& spec, Autograd autograd);

// Finds what an operator saves besides its outputs for its own backward, and how large it is.

struct SavedStatistic {
  std::string_view suffix;  // Appended to the node's name: "bn1:moments".
  Bytes bytes;
};

// Returns nothing if the operator's backward needs no statistic, or if one of the operator's own
// outputs serves as one. `is_stored` says for each output, by position, whether it exists as a
// tensor; an output that is never read does not.
std::optional<SavedStatistic> StatisticOf(const OpSpec& spec, Autograd autograd,
                                          const std::vector<bool>& is_stored);

// Returns whether the mask of a Dropout has one byte for each element: PyTorch's fused kernel on a
// GPU writes such a mask, but not in place.
bool HasByteMask(const OpSpec& spec, Autograd autograd);

// Returns whether the operator's second output, where it is stored, is its statistic.
bool OutputServesAsStatistic(const OpSpec& spec);

}  // namespace ckplan
