// Access to elements of any type with one interface; float stands for both float types.
#pragma once

#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

// Reads x[i] of a tensor of T.
template <typename T>
struct Reader {
  const T* data;
  Reader(const void* from, ElementType) : data(static_cast<const T*>(from)) {}
  CKPLAN_DEVICE T operator[](int64_t i) const { return data[i]; }
};
template <>
struct Reader<float> : FloatsIn {
  using FloatsIn::FloatsIn;
};

// Set(i, x) writes to a tensor of T, which may be null.
template <typename T>
struct Writer {
  T* data;
  Writer(void* to, ElementType) : data(static_cast<T*>(to)) {}
  CKPLAN_DEVICE void Set(int64_t i, T value) const { data[i] = value; }
  CKPLAN_DEVICE bool is_null() const { return data == nullptr; }
};
template <>
struct Writer<float> : FloatsOut {
  using FloatsOut::FloatsOut;
};

}  // namespace ckplan::cuda
