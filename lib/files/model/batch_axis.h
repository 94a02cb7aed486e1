// Where the batch goes when an array is reshaped, read from the two shapes at one batch.
//
//   [8,128,768] → [1024,768] → [1024,12,64]     the batch becomes a part of the first axis
//   [50,1,768]  → [50,12,64]                    a batch of 1: of axis 1, since axis 0 is as it was
//
// The elements of one sample are as far from those of the next before as after. With a batch above
// 1 at most one axis fits. A batch of 1 is an axis of its own wherever an axis of 1 has that
// distance. Elsewhere it lies between two axes, and the shapes decide to which of them it belongs:
// the last axis, of features, never has it; else it is not of the axes that are as before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lib/files/model/constant.h"

namespace ckplan {

// Returns the product of the dimensions after `axis`.
int64_t ElementsWithin(const Dims& dims, size_t axis);

struct BatchPlace {
  size_t axis = 0;  // The axis of the array that holds the batch.
  // The number of elements of this axis between one sample and the next: 1 if the batch is the
  // whole axis or its fastest part.
  int64_t step = 1;

  bool operator==(const BatchPlace&) const = default;
};

// Returns the place in `to` on that axis, if the batch may be there: see PlaceAfterReshape.
std::optional<BatchPlace> PlaceOnAxis(const Dims& from, BatchPlace place, const Dims& to,
                                      size_t axis, int64_t batch);

// Returns the place of a batch of `batch` in `to`, given its place in `from`; both arrays have the
// same elements, and at least one. Returns nothing if several places, or none, are possible.
std::optional<BatchPlace> PlaceAfterReshape(const Dims& from, BatchPlace place, const Dims& to,
                                            int64_t batch);

}  // namespace ckplan
