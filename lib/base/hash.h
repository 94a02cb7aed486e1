// SHA-256 (FIPS 180-4). ckplan's output files identify their models by this hash.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ckplan {

// Feed bytes with Update in pieces of any size, then call HexDigest once.
class Sha256 {
 public:
  void Update(std::string_view bytes);
  std::string HexDigest();  // 64 lower-case hexadecimal digits.

 private:
  void Compress(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  uint64_t total_bytes_ = 0;
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace ckplan
