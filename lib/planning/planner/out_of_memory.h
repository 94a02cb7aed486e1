// Turns an algorithm's lack of memory into an error.
#pragma once

#include <new>

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

// kUnsupported: the algorithm needs more memory than the limit or than is available.
Error OutOfMemoryError(const SolverInfo& info, const SolveLimits& limits);
bool IsOutOfMemory(const Error& error);

// Returns the result of `solve`, or OutOfMemoryError if it runs out of memory. Its memory is freed
// before that.
template <typename Solve>
auto CatchOutOfMemory(const SolverInfo& info, const SolveLimits& limits, Solve solve)
    -> decltype(solve()) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(info, limits);
  }
}

}  // namespace ckplan
