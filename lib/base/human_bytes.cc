#include "lib/base/human_bytes.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace ckplan {
namespace {

// Returns `count` in hundredths of 2^shift. Integer arithmetic throughout: a double would not round
// ties reliably.
uint64_t Hundredths(uint64_t count, int shift) {
  const uint64_t whole = count >> shift;
  const uint64_t rest = count - (whole << shift);
  const uint64_t half = uint64_t{1} << (shift - 1);
  return whole * 100 + ((rest * 100 + half) >> shift);
}

uint64_t Magnitude(Bytes bytes) {
  const auto bits = static_cast<uint64_t>(bytes.count());
  return bytes < Bytes(0) ? 0 - bits : bits;
}

}  // namespace

ByteUnit UnitOf(Bytes typical) {
  const uint64_t count = Magnitude(typical);
  if (count < 1024) return {"B", 0};
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  int shift = 10;
  while (Hundredths(count, shift) >= 102400 && unit + 1 < std::size(kUnits)) {
    ++unit;
    shift += 10;
  }
  return {std::string(kUnits[unit]), shift};
}

std::string AmountIn(const ByteUnit& unit, Bytes bytes) {
  const std::string_view sign = bytes < Bytes(0) ? "-" : "";
  const uint64_t count = Magnitude(bytes);
  if (unit.shift == 0) return fmt::format("{}{}", sign, count);
  const uint64_t value = Hundredths(count, unit.shift);
  return fmt::format("{}{}.{:02}", sign, value / 100, value % 100);
}

std::string HumanBytes(Bytes bytes) {
  const ByteUnit unit = UnitOf(bytes);
  return fmt::format("{} {}", AmountIn(unit, bytes), unit.name);
}

std::string SignedBytes(Bytes change) {
  if (change < Bytes(0)) return fmt::format("-{}", HumanBytes(Bytes(0) - change));
  return fmt::format("{}{}", change > Bytes(0) ? "+" : "", HumanBytes(change));
}

}  // namespace ckplan
