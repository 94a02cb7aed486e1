// How deep a text of TOML is nested, looked at before it is parsed. toml++ bounds the nesting of
// values, but not the number of parts of a key, a.b.c.d, each of which is a table in the one
// before; tables are destroyed by recursion, which 100,000 of them take beyond any stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ckplan {

inline constexpr int64_t kMaxTomlKeyParts = 16;  // More than any setting has.
inline constexpr int64_t kMaxTomlNesting = 16;   // Lists and tables in each other.

struct TomlFault {
  int64_t line = 0;  // From 1.
  std::string what;
};

// The first place beyond the limits. Dots and brackets in strings and in comments do not count. A
// text that is no TOML is looked at up to where toml++ stops to read it, or further.
std::optional<TomlFault> FindDeepToml(std::string_view text);

}  // namespace ckplan
