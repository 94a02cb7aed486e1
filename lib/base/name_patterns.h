// Lists of patterns that choose among named things: operations, tensors, parameters.
//
//   *.weight        every name with this ending (lib/base/name_patterns.h)
//   op:Relu         everything of that type; the type may be a glob as well
//   !layer4.*       excludes names that an earlier pattern chose
//
// Patterns apply in order: the last one that fits a thing decides. If the first pattern begins with
// "!", everything is chosen at the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// Patterns for names, in the syntax of shells.

// The longest pattern with wildcards, in bytes. The cost of matching each byte of a name grows with
// the length of the pattern.
inline constexpr size_t kMaxGlobBytes = 1000;

// The most patterns in one list (lib/base/name_patterns.h): more than the largest models have
// parameters.
inline constexpr size_t kMaxPatterns = 100'000;

// Returns whether the text contains a wildcard, "*" or "?".
bool IsGlob(std::string_view text);

// kUsage: the text has wildcards and is longer than kMaxGlobBytes.
Result<Done> CheckGlob(std::string_view text);

// A pattern. "*" matches any characters, including none, slashes and dots; "?" matches any single
// byte; every other character matches itself.
//
// The pattern is read as an automaton whose states are its prefixes. Matching follows all states
// that the name can lead to at once, 64 of them in each word, so it never backtracks.
class Glob {
 public:
  // CheckGlob must have accepted the pattern.
  explicit Glob(std::string_view pattern);

  // Returns whether the pattern matches the whole `name`. O(name * (1 + pattern / 64)). Polls for a
  // stop.
  bool Matches(std::string_view name) const;

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kMaxWords = kMaxGlobBytes / kWordBits + 1;

  void Set(std::vector<uint64_t>* states, size_t row, size_t state) const;

  size_t words_ = 1;
  size_t length_ = 0;  // The least length of a matching name in bytes: the pattern without its
                       // stars.
  std::vector<uint64_t> takes_;  // For each byte: the states from which it leads to the next state.
  std::vector<uint64_t> stays_;  // The states that every byte also leads back to: those before a
                                 // star.
};

using NamePatterns = std::vector<std::string>;

// Something that can be chosen.
struct NamedThing {
  std::vector<std::string_view> names;  // A pattern may fit any of these names.
  std::string_view type;                // Empty if the thing has no type.
};

// Returns for each thing whether it is chosen; an empty list of patterns chooses nothing. kUsage: a
// pattern fits nothing. `what` names the kind of thing in messages, such as "parameter".
Result<std::vector<bool>> ChooseByName(const NamePatterns& patterns,
                                       std::span<const NamedThing> things, std::string_view what);

}  // namespace ckplan
