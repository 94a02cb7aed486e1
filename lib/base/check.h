// Invariants of our own code. A broken invariant is a bug in ckplan, never the user's fault.
#pragma once

#include <string_view>

namespace ckplan {

// Prints where and why a check failed on stderr and ends the process with exit code 70 (internal
// fault).
[[noreturn]] void FailCheck(std::string_view file, int line, std::string_view condition,
                            std::string_view why);

}  // namespace ckplan

// Stops the program with exit code 70 unless `condition` holds; `why` says why it must hold.
#define CKPLAN_CHECK(condition, why)                              \
  do {                                                            \
    if (!(condition)) {                                           \
      ::ckplan::FailCheck(__FILE__, __LINE__, #condition, (why)); \
    }                                                             \
  } while (false)
