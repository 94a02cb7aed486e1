// Patterns for names, as shells have them.
#pragma once

#include <string_view>

namespace ckplan {

// Whether the text has a wildcard: "*" or "?".
bool IsGlob(std::string_view text);

// Whether all of `name` is of the pattern: "*" stands for any characters, also for none and for
// slashes and dots, "?" for any single byte, and every other character for itself. O(pattern x
// name) in the worst case.
bool MatchesGlob(std::string_view pattern, std::string_view name);

}  // namespace ckplan
