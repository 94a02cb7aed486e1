#include "lib/base/glob.h"

#include <cstddef>

namespace ckplan {

bool IsGlob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  // Where the last "*" stands, and how far into the name it has been taken to reach: on a mismatch
  // it reaches one character further, and earlier ones need not be looked at again.
  size_t star = std::string_view::npos, reach = 0;
  size_t p = 0, n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      reach = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++reach;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace ckplan
