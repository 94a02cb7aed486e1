#include "lib/executor/cuda/ptx/matrix_product.h"

#include <array>

#include "lib/executor/cuda/ptx/lanes.h"

namespace ckplan::ptx {

namespace {

constexpr int kRows = 16, kColumns = 8, kDeepest = 16;

struct Factors {
  double a[kRows][kDeepest];
  double b[kDeepest][kColumns];
};

double HalfAt(uint64_t bits, int which) {
  return ValueOf<float>((bits >> (16 * which) & 0xFFFFU) << 16);
}

double Tf32At(uint64_t bits) { return ValueOf<float>(bits & 0xFFFFE000U); }

// Registers of A go down first, and then along; those of B go down.
void ReadHalves(const MatrixProduct& product, LaneRegisters registers, int lane, Factors& to) {
  const int group = lane / 4;
  const int pair = lane % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    const uint64_t bits = registers.Bits(product.a[i], lane);
    for (int which = 0; which < 2; ++which) {
      to.a[group + i % 2 * 8][pair + i / 2 * 8 + which] = HalfAt(bits, which);
    }
  }
  for (int i = 0; i < 2; ++i) {
    const uint64_t bits = registers.Bits(product.b[i], lane);
    for (int which = 0; which < 2; ++which) {
      to.b[pair + i * 8 + which][group] = HalfAt(bits, which);
    }
  }
}

void ReadTf32(const MatrixProduct& product, LaneRegisters registers, int lane, Factors& to) {
  const int group = lane / 4;
  const int place = lane % 4;
  for (int i = 0; i < 4; ++i) {
    to.a[group + i % 2 * 8][place + i / 2 * 4] = Tf32At(registers.Bits(product.a[i], lane));
  }
  for (int i = 0; i < 2; ++i) {
    to.b[place + i * 4][group] = Tf32At(registers.Bits(product.b[i], lane));
  }
}

}  // namespace

std::optional<MatrixProduct> ProductOf(const std::vector<std::string_view>& words) {
  using Words = std::vector<std::string_view>;
  MatrixProduct product;
  if (words ==
      Words{"mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32"}) {
    product.depth = 16;
    return product;
  }
  if (words ==
      Words{"mma", "sync", "aligned", "m16n8k8", "row", "col", "f32", "tf32", "tf32", "f32"}) {
    product.depth = 8;
    return product;
  }
  return std::nullopt;
}

void ComputeProduct(const MatrixProduct& product, LaneRegisters registers) {
  Factors factors;
  for (int lane = 0; lane < kLanes; ++lane) {
    (product.depth == 16 ? ReadHalves : ReadTf32)(product, registers, lane, factors);
  }
  std::array<std::array<uint64_t, 4>, kLanes> results;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8;
      const int column = lane % 4 * 2 + i % 2;
      double sum = ValueOf<float>(registers.Bits(product.c[i], lane));
      for (int k = 0; k < product.depth; ++k) sum += factors.a[row][k] * factors.b[k][column];
      results[static_cast<size_t>(lane)][static_cast<size_t>(i)] =
          FloatBits(static_cast<float>(sum));
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      registers.Row(product.d[i])[lane] =
          results[static_cast<size_t>(lane)][static_cast<size_t>(i)];
    }
  }
}

}  // namespace ckplan::ptx
