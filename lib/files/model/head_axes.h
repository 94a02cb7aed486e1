// Follows the axes of an attention through transposes and reshapes, to find where in memory the
// rows of each head lie before or after their heads are moved.
//
//   x [B,S,H*D] ─ Reshape ─▶ [B,S,H,D] ─ Transpose ─▶ [B,H,S,D], an operand of a product
//                                                     b h s d
//   x holds the same elements in the order "bshd".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/files/model/constant.h"

namespace ckplan {

class HeadAxes {
 public:
  // `letters` has one letter for each dimension: b, h, s or d. Neighbouring dimensions with the
  // same letter are one axis.
  HeadAxes(const Dims& dims, const std::string& letters);

  // What a Transpose of the given order makes of the tensor, and what it was made from.
  HeadAxes TransposedBy(const std::vector<int64_t>& order) const;
  HeadAxes BeforeTransposeBy(const std::vector<int64_t>& order) const;
  // Gives the elements other dimensions; nothing if a dimension would have parts of two axes
  // that do not divide it.
  std::optional<HeadAxes> Reshaped(const Dims& dims) const;
  // What an Expand to these dimensions has repeated; `dims` are those before it. Only the innermost
  // part of the heads may be repeated: nothing otherwise.
  std::optional<HeadAxes> BeforeExpand(const Dims& dims) const;

  // How often each head was repeated.
  int64_t repeats() const { return repeats_; }
  // The order of the axes in memory: "bshd"; nothing if an axis is in several places, or the
  // elements of a row are not last.
  std::optional<std::string> Order() const;

 private:
  // A part of an axis: elements `place` apart.
  struct Factor {
    char axis = 'b';
    int64_t size = 1;
    int64_t place = 1;
  };

  HeadAxes() = default;
  std::vector<Factor> Flat() const;

  std::vector<std::vector<Factor>> dims_;  // By dimension, from the outermost.
  int64_t repeats_ = 1;
};

}  // namespace ckplan
