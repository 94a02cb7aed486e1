// Patterns for names, as shells have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// The longest text that may be a pattern with wildcards, in bytes: what matching costs for each
// byte of a name grows with it.
inline constexpr size_t kMaxGlobBytes = 1000;

// The most patterns that one list of lib/base/name_patterns.h may have: more than the largest
// models have parameters.
inline constexpr size_t kMaxPatterns = 100'000;

// Whether the text has a wildcard: "*" or "?".
bool IsGlob(std::string_view text);

// kUsage: the text has wildcards, and more bytes than kMaxGlobBytes.
Result<Done> CheckGlob(std::string_view text);

// A pattern: "*" stands for any characters, also for none and for slashes and dots, "?" for any
// single byte, and every other character for itself.
//
// It is read as an automaton whose states are its beginnings. All states that a name leads to are
// followed at once, 64 of them in each word, so that no pattern makes matching try again.
class Glob {
 public:
  // CheckGlob must have accepted the pattern.
  explicit Glob(std::string_view pattern);

  // Whether all of `name` is of the pattern. O(name * (1 + pattern / 64)). Polls for a stop.
  bool Matches(std::string_view name) const;

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kMaxWords = kMaxGlobBytes / kWordBits + 1;

  void Set(std::vector<uint64_t>* states, size_t row, size_t state) const;

  size_t words_ = 1;
  size_t length_ = 0;  // Bytes that a name must have at least: all of the pattern but its stars.
  std::vector<uint64_t> takes_;  // For each byte: the states that it leads to the next one.
  std::vector<uint64_t> stays_;  // The states that every byte also leads to themselves: a star.
};

}  // namespace ckplan
