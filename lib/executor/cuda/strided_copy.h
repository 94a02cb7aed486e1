// Copies between tensors with different axis orders: transposes, slices, joins.
#pragma once

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/index.h"

namespace ckplan::cuda {

// One side of a copy: its element at index i is at offset base + Σ i_a strides[a].
struct CopySide {
  ElementType type = ElementType::kFloat32;
  Dims strides;  // May be negative; 0 only in the source.
  int64_t base = 0;
};

// Copies the elements of all indices i with i_a < dims[a] from one side to the other. No element is
// written twice. The types must be equal or both be float types.
class StridedCopy {
 public:
  StridedCopy() = default;
  StridedCopy(const Dims& dims, const CopySide& from, const CopySide& to);

  // True if the kernels support the number of axes after merging neighbours.
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
  int64_t element_bytes_ = 0;  // Bytes copied at once; 0 to convert floats.
  DeviceLayout<2> layout_;     // Offsets of elements or, with tiles, of matrices.
  int64_t rows_ = 0, columns_ = 0;
  int64_t from_row_ = 0, to_column_ = 0;  // Strides; the other two strides are 1.
};

}  // namespace ckplan::cuda
