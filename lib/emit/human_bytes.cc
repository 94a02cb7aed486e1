#include "lib/emit/human_bytes.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace ckplan {
namespace {

// `count` in hundredths of 2^shift. Integers all the way: a double rounds ties as it pleases.
uint64_t Hundredths(uint64_t count, int shift) {
  const uint64_t whole = count >> shift;
  const uint64_t rest = count - (whole << shift);
  const uint64_t half = uint64_t{1} << (shift - 1);
  return whole * 100 + ((rest * 100 + half) >> shift);
}

}  // namespace

std::string HumanBytes(Bytes bytes) {
  const std::string_view sign = bytes < Bytes(0) ? "-" : "";
  const auto bits = static_cast<uint64_t>(bytes.count());
  const uint64_t count = bytes < Bytes(0) ? 0 - bits : bits;
  if (count < 1024) return fmt::format("{}{} B", sign, count);
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  uint64_t value = Hundredths(count, 10);
  while (value >= 102400 && unit + 1 < std::size(kUnits)) {
    ++unit;
    value = Hundredths(count, 10 * (static_cast<int>(unit) + 1));
  }
  return fmt::format("{}{}.{:02} {}", sign, value / 100, value % 100, kUnits[unit]);
}

}  // namespace ckplan
