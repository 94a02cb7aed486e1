// What becomes of an algorithm that needs more memory than there is.
#pragma once

#include <new>

#include "lib/base/result.h"
#include "lib/plan/solver.h"

namespace ckplan {

// kUnsupported: the algorithm needs more memory than the limit, or than there is.
Error OutOfMemoryError(const SolverInfo& info, const SolveLimits& limits);
bool IsOutOfMemory(const Error& error);

// Returns what `solve` returns, or that error where memory ends; what the algorithm held is then
// free again.
template <typename Solve>
auto UnlessOutOfMemory(const SolverInfo& info, const SolveLimits& limits, Solve solve)
    -> decltype(solve()) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(info, limits);
  }
}

}  // namespace ckplan
