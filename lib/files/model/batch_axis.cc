#include "lib/files/model/batch_axis.h"

#include <algorithm>
#include <vector>

namespace ckplan {

namespace {

// The batch lies between two strides: one sample is `low` elements from the next, and all samples
// together are `high` elements.
struct Strides {
  int64_t low = 1;
  int64_t high = 1;
};

Strides StridesOf(const Dims& dims, size_t axis) {
  const int64_t within = ElementsWithin(dims, axis);
  return {within, within * dims[axis]};
}

// The strides of the batch in an array that holds it there.
Strides SamplesOf(const Dims& dims, BatchPlace place, int64_t batch) {
  const int64_t low = ElementsWithin(dims, place.axis) * place.step;
  return {low, low * batch};
}

bool Holds(const Strides& axis, const Strides& batch) {
  return batch.low % axis.low == 0 && axis.high % batch.high == 0;
}

bool HasTail(const Dims& dims, size_t after, const Dims& other, size_t other_after) {
  return std::equal(dims.begin() + static_cast<std::ptrdiff_t>(after) + 1, dims.end(),
                    other.begin() + static_cast<std::ptrdiff_t>(other_after) + 1, other.end());
}

bool HasHead(const Dims& dims, size_t until, const Dims& other, size_t other_until) {
  return until == other_until &&
         std::equal(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(until), other.begin());
}

// Chooses among several axes that are the batch and nothing else: axes of 1 beside each other.
std::optional<size_t> ChooseOwn(const std::vector<size_t>& own, const Dims& to, size_t before,
                                const Strides& batch) {
  if (own.empty()) return std::nullopt;
  if (own.size() == 1) return own.front();
  if (std::find(own.begin(), own.end(), before) != own.end()) return before;
  const bool is_outermost = StridesOf(to, 0).high == batch.high;
  return is_outermost ? std::optional(own.front()) : std::nullopt;
}

}  // namespace

int64_t ElementsWithin(const Dims& dims, size_t axis) {
  int64_t elements = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) elements *= dims[i];
  return elements;
}

std::optional<BatchPlace> PlaceOnAxis(const Dims& from, BatchPlace place, const Dims& to,
                                      size_t axis, int64_t batch) {
  const Strides within = StridesOf(to, axis);
  const Strides samples = SamplesOf(from, place, batch);
  if (!Holds(within, samples)) return std::nullopt;
  return BatchPlace{axis, samples.low / within.low};
}

std::optional<BatchPlace> PlaceAfterReshape(const Dims& from, BatchPlace place, const Dims& to,
                                            int64_t batch) {
  const Strides samples = SamplesOf(from, place, batch);
  std::vector<size_t> own;
  std::vector<BatchPlace> around;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == batch && StridesOf(to, i).low == samples.low) own.push_back(i);
    if (const auto found = PlaceOnAxis(from, place, to, i, batch)) around.push_back(*found);
  }
  if (!own.empty()) {
    const auto chosen = ChooseOwn(own, to, place.axis, samples);
    return chosen ? std::optional(BatchPlace{*chosen, 1}) : std::nullopt;
  }
  if (around.size() == 1) return around.front();
  if (around.size() != 2) return std::nullopt;
  // A batch of 1 ends the one axis, or begins the other.
  const BatchPlace& before = around.front();
  const BatchPlace& after = around.back();
  if (after.axis + 1 == to.size()) return before;
  const bool is_same_before = HasHead(to, after.axis, from, place.axis);
  const bool is_same_after = place.step == 1 && HasTail(to, before.axis, from, place.axis);
  if (is_same_before == is_same_after) return std::nullopt;
  return is_same_before ? after : before;
}

}  // namespace ckplan
