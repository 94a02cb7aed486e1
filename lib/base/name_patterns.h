// Lists of patterns that select named things: operations, tensors or parameters.
//
//   *.weight        every name with this ending (lib/base/name_patterns.h)
//   op:Relu         everything of that type; the type may be a glob, too
//   !layer4.*       excludes names that an earlier pattern selected
//
// Patterns apply in order: the last one that matches a thing decides. If the first pattern begins
// with "!", everything is selected at the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// Shell-style patterns for names.

// The longest pattern with wildcards, in bytes: matching takes longer the longer the pattern is.
inline constexpr size_t kMaxGlobBytes = 1000;

// The most patterns in one list: more than the largest models have parameters.
inline constexpr size_t kMaxPatterns = 100'000;

// Returns true if the text contains a wildcard, "*" or "?".
bool IsGlob(std::string_view text);

// kUsage: the text has wildcards and is longer than kMaxGlobBytes.
Result<Done> CheckGlob(std::string_view text);

// A pattern. "*" matches any characters, including none, slashes and dots; "?" matches any single
// byte; every other character matches itself.
//
// The pattern becomes an automaton with a state for each prefix. Matching tracks all reachable
// states at once as bits, so it never backtracks.
class Glob {
 public:
  // CheckGlob must have accepted the pattern.
  explicit Glob(std::string_view pattern);

  // Returns true if the pattern matches the whole name. O(name * (1 + pattern / 64)). Polls for a
  // stop.
  bool Matches(std::string_view name) const;

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kMaxWords = kMaxGlobBytes / kWordBits + 1;

  void Set(std::vector<uint64_t>* states, size_t row, size_t state) const;

  size_t words_ = 1;
  size_t length_ = 0;  // The bytes of the pattern without its stars: the shortest name it matches.
  std::vector<uint64_t> takes_;  // For each byte: the states from which it leads to the next state.
  std::vector<uint64_t> stays_;  // The states before a star: any byte also leads back to them.
};

using NamePatterns = std::vector<std::string>;

struct NamedThing {
  std::vector<std::string_view> names;  // A pattern needs to match only one of them.
  std::string_view type;                // Empty if the thing has no type.
};

// Returns a flag per thing: whether the patterns select it. An empty list of patterns selects
// nothing. kUsage: a pattern matches nothing. `what` names the kind of thing in messages, such as
// "parameter".
Result<std::vector<bool>> ChooseByName(const NamePatterns& patterns,
                                       std::span<const NamedThing> things, std::string_view what);

}  // namespace ckplan
