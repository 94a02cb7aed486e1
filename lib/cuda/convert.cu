#include <algorithm>

#include "lib/cuda/convert.h"
#include "lib/cuda/launch.h"

namespace ckplan::cuda {

namespace {

struct Same {
  CKPLAN_DEVICE float operator()(float x) const { return x; }
};

// Returns whether Map can read 16 bytes at once.
bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % sizeof(Float4) == 0; }

}  // namespace

ElementType CommonType(std::initializer_list<ElementType> types) {
  const bool has_half =
      std::find(types.begin(), types.end(), ElementType::kBFloat16) != types.end();
  return has_half ? ElementType::kBFloat16 : ElementType::kFloat32;
}

void Convert(Device& device, int64_t count, const void* from, ElementType from_type, void* to,
             ElementType to_type) {
  if (from_type == to_type) {
    device.Copy(to, from, count * SizeOf(to_type));
    return;
  }
  const FloatsIn x(from, from_type);
  const FloatsOut y(to, to_type);
  if (IsAligned(from) && IsAligned(to)) {
    Map(device, count, y, Same(), x);
  } else {
    ForEach(device, count, [=] CKPLAN_KERNEL(int64_t i) { y.Set(i, x[i]); });
  }
}

const void* Conversion::Apply(Device& device, const void* data, void* workspace) const {
  if (!is_needed()) return data;
  void* copy = BufferAt(workspace, offset_);
  Convert(device, count_, data, from_, copy, to_);
  return copy;
}

void Conversion::Return(Device& device, void* result, void* workspace) const {
  if (is_needed()) Convert(device, count_, BufferAt(workspace, offset_), to_, result, from_);
}

}  // namespace ckplan::cuda
