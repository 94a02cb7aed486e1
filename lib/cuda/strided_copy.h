// Copies between tensors that are walked in different orders: transposes, slices, joins.
#pragma once

#include "lib/backend/backend.h"
#include "lib/cuda/device.h"
#include "lib/cuda/index.h"

namespace ckplan::cuda {

// One side of a copy: element i of it is at base + Σ i_a strides[a].
struct CopySide {
  ElementType type = ElementType::kFloat32;
  Dims strides;  // May be negative; in what is read, 0.
  int64_t base = 0;
};

// Copies every element below `dims` from one side to the other; no two are written to one place.
// Types are equal, or both floats.
class StridedCopy {
 public:
  StridedCopy() = default;
  StridedCopy(const Dims& dims, const CopySide& from, const CopySide& to);

  // Its axes, neighbours merged, are no more than kernels walk.
  bool fits() const { return fits_; }
  StridedCopy Reversed() const { return StridedCopy(dims_, to_, from_); }
  void Run(Device& device, const void* from, void* to) const;

 private:
  enum class Way { kNothing, kWhole, kTiles, kElements };

  void Choose(Layout layout);
  bool FindTiles(const Layout& layout);
  void Widen(Layout& layout);

  Dims dims_;
  CopySide from_, to_;

  bool fits_ = true;
  Way way_ = Way::kNothing;
  int64_t from_base_ = 0, to_base_ = 0;
  int64_t element_bytes_ = 0;  // Of what is copied at once; 0 where floats are converted.
  DeviceLayout<2> layout_;     // Of the elements; of the matrices, where there are tiles.
  int64_t rows_ = 0, columns_ = 0;
  int64_t from_row_ = 0, to_column_ = 0;  // Strides; the others are 1.
};

}  // namespace ckplan::cuda
