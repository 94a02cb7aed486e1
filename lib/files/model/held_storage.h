// Finds the memory that PyTorch holds because autograd saves a part of it.
//
//   a, b = linear(x).chunk(2, -1)      b is a view of the linear layer's result, so saving b for
//   the y = sigmoid(a) * b                 product holds a's half as well: the rest
//
// A plan's tensors are copies: Slice and Split make the parts. The last operation that reads the
// whole also makes the rest, a tensor without contents, which the operations that save parts later
// on read with them. So a plan can drop the rest only together with the parts, and gets both back
// from the whole.
//
// Which values share memory follows from strides, as in PyTorch: parts, selections and Transposes
// are views; so are Reshapes if the strides allow it, and otherwise copies. A product of matrices
// saves a copy of an operand whose leading axes can't be merged. What is saved in full or is an
// input of the step has no rest. Not covered:
//   - a whole and a part of it that are both saved, of which PyTorch holds only the whole;
//   - parts that are saved before the last operation that reads the whole, whose backward doesn't
//     hold the rest: only later savers do;
//   - results of operations in place on a part, which stay in the memory of the whole.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/units.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/autograd.h"

namespace ckplan {

struct HeldRest {
  ValueIndex storage = kNoValue;  // The value that is held for its parts.
  size_t maker = 0;               // The operation that makes the rest: a reader of the whole.
  Bytes bytes;                    // The memory without its saved parts; above 0.
  // The operations whose backward holds it, ascending: those after the maker that save a part of
  // the memory or, if there are none, the maker itself.
  std::vector<size_t> holders;
};

// Ordered by the first operation that saves a part. O(operands, times their rank).
std::vector<HeldRest> FindHeldRests(const Model::Impl& model, const ModelFacts& facts,
                                    Autograd autograd);

}  // namespace ckplan
