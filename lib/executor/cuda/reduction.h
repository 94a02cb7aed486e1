// Reductions of a tensor along any of its axes.
//
// Neighbouring threads read adjacent elements: elements of one result if the last axis is reduced,
// and elements of neighbouring results if it is kept.
#pragma once

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/reduce.h"

namespace ckplan::cuda {

class Reduction {
 public:
  // `layout` is the layout of the tensor and the result; the strides of the result are 0 along the
  // reduced axes.
  explicit Reduction(const Layout& layout) {
    Layout kept{{}, {{}}}, reduced{{}, {{}}};
    for (size_t axis = 0; axis < layout.dims.size(); ++axis) {
      Layout& axes = layout.strides[1][axis] != 0 ? kept : reduced;
      axes.dims.push_back(layout.dims[axis]);
      axes.strides[0].push_back(layout.strides[0][axis]);
    }
    constexpr int64_t kFewColumns = 16;
    const bool is_columns = layout.inner_stride(1) != 0 && layout.inner() >= kFewColumns;
    kept_ = DeviceLayout<1>(Filled(kept));
    reduced_ = DeviceLayout<1>(Filled(reduced));
    shape_ = ReduceShape::Of(kept_.count(), reduced_.count(), is_columns);
    // Rows of a few elements are faster with one thread each than with a team.
    constexpr int64_t kShort = 16, kManyRows = 1024;
    is_by_teams_ = !is_columns && shape_.length > kShort && shape_.results >= kManyRows;
  }

  int64_t results() const { return shape_.results; }
  int64_t length() const { return shape_.length; }
  // Returns the size in bytes of the workspace of Run for this Value.
  template <typename Value>
  int64_t workspace() const {
    return is_by_teams_ ? 0 : shape_.workspace<Value>();
  }

  // Calls finish(result, combination of load(result, element) over the elements of the tensor that
  // belong to the result). `load` and `finish` are kernels; for the other parameters see Reduce.
  template <typename Value, typename Load, typename Combine, typename Finish>
  void Run(Device& device, Value identity, const Load& load, const Combine& combine,
           const Finish& finish, void* workspace) const;

 private:
  static Layout Filled(Layout layout) {
    if (!layout.dims.empty()) return layout;
    return {{1}, {{0}}};
  }

  ReduceShape shape_;
  bool is_by_teams_ = false;
  DeviceLayout<1> kept_, reduced_;
};

namespace detail {

template <typename Load>
struct LoadElement {
  DeviceLayout<1> kept, reduced;
  Load load;
  CKPLAN_KERNEL auto operator()(int64_t result, int64_t i) const {
    return load(result, kept.Find(result)[0] + reduced.Find(i)[0]);
  }
};

template <typename Value, typename Load, typename Combine, typename Finish>
struct ReduceRow {
  int64_t length;
  Value identity;
  LoadElement<Load> element;
  Combine combine;
  Finish finish;
  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const int64_t first = element.kept.Find(row)[0];
    const Value value = team.Reduce(
        length, identity,
        [&](int64_t i) { return element.load(row, first + element.reduced.Find(i)[0]); }, combine);
    if (team.IsFirst()) finish(row, value);
  }
};

}  // namespace detail

template <typename Value, typename Load, typename Combine, typename Finish>
void Reduction::Run(Device& device, Value identity, const Load& load, const Combine& combine,
                    const Finish& finish, void* workspace) const {
  const detail::LoadElement<Load> element{kept_, reduced_, load};
  if (is_by_teams_) {
    ForRows(device, shape_.results, shape_.length,
            detail::ReduceRow<Value, Load, Combine, Finish>{shape_.length, identity, element,
                                                            combine, finish});
  } else {
    Reduce(device, shape_, identity, element, combine, finish, workspace);
  }
}

}  // namespace ckplan::cuda
