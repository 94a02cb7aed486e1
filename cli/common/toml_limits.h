// Limits how deep a TOML text is nested, before it is parsed. toml++ limits the nesting of values,
// but not the number of parts of a key such as a.b.c.d, each of which is a table in the one before.
// Tables are destroyed by recursion, and 100,000 of them overflow any stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ckplan {

inline constexpr int64_t kMaxTomlKeyParts = 16;  // This is more than any setting has.
inline constexpr int64_t kMaxTomlNesting = 16;   // Lists and tables nested in each other.

struct TomlFault {
  int64_t line = 0;  // From 1.
  std::string what;
};

// Returns the first place beyond the limits. Dots and brackets in strings and in comments do not
// count. A text that is not TOML is examined at least up to the place where toml++ stops reading.
std::optional<TomlFault> FindDeepToml(std::string_view text);

}  // namespace ckplan
