#include "lib/executor/core/seeded.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/base/rng.h"
#include "lib/problem/ops/bfloat16.h"

namespace ckplan {

namespace {

constexpr float kSqrt3 = 1.7320508F;  // A uniform number in [-sqrt 3, sqrt 3] has variance 1.

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(T));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Returns integers in [0, bound), or all 1 if no bound is known.
std::vector<std::byte> Integers(uint64_t seed, const Operand& operand, int64_t bound) {
  Rng rng(seed);
  const int64_t count = operand.elements();
  const auto size = static_cast<size_t>(SizeOf(operand.type));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = bound > 0 ? rng.Between(0, bound - 1) : 1;
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size, &value, size);  // Little-endian.
  }
  return bytes;
}

struct Range {
  float low = 0;
  float high = 0;
};

Range RangeOf(const StepConstant& constant) {
  switch (constant.used.use) {
    case ParameterUse::kWeight: {
      const float deviation =
          std::sqrt(2.0F / static_cast<float>(std::max<int64_t>(constant.used.fan_in, 1)));
      return {-kSqrt3 * deviation, kSqrt3 * deviation};
    }
    case ParameterUse::kScale:
      return {0.5F, 1.5F};
    case ParameterUse::kEmbedding:
      return {-kSqrt3, kSqrt3};
    case ParameterUse::kShift:
    case ParameterUse::kOther:
      return {-0.1F, 0.1F};
  }
  return {};
}

}  // namespace

uint64_t SeedFor(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u ^ seed;  // FNV-1a, then mixed.
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return Rng(hash).Next();
}

std::vector<float> UniformFloats(uint64_t seed, int64_t count, float low, float high) {
  Rng rng(seed);
  std::vector<float> floats(static_cast<size_t>(count));
  for (float& value : floats) {
    const float unit = static_cast<float>(rng.Next() >> 40) * 0x1p-24F;  // [0, 1), 24 bits.
    value = low + (high - low) * unit;
  }
  return floats;
}

std::vector<std::byte> SeededConstant(uint64_t seed, const StepConstant& constant) {
  const uint64_t own = SeedFor(seed, constant.name);
  if (constant.operand.type != ElementType::kFloat32) {
    return Integers(own, constant.operand, constant.index_bound);
  }
  const Range range = RangeOf(constant);
  return BytesOf(UniformFloats(own, constant.operand.elements(), range.low, range.high));
}

std::vector<std::byte> SeededInput(uint64_t seed, const StepInput& input) {
  const uint64_t own = SeedFor(seed, input.name);
  if (!IsFloat(input.operand.type)) return Integers(own, input.operand, input.index_bound);
  const std::vector<float> floats = UniformFloats(own, input.operand.elements(), -kSqrt3, kSqrt3);
  return input.operand.type == ElementType::kBFloat16 ? BytesOf(ToBFloat16(floats))
                                                      : BytesOf(floats);
}

}  // namespace ckplan
