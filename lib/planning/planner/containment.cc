#include "lib/planning/planner/containment.h"

#include <array>

#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

struct Containment {
  std::string_view larger;
  std::string_view smaller;
};

constexpr std::array kContainments = {
    // chen-search has seven of chen-greedy's settings.
    Containment{"chen-greedy", "chen-search"},
    // Closures are lower sets.
    Containment{"exact-dp", "approx-dp"},
    // The nodes between two splitting vertices are a close set.
    Containment{"feng-acg", "feng-linear"},
    Containment{"kusumoto-exhaustive", "approx-dp"},
};

}  // namespace

std::vector<const SolverInfo*> ContainedIn(std::string_view algorithm) {
  std::vector<const SolverInfo*> contained;
  for (const Containment& row : kContainments) {
    if (row.larger == algorithm) contained.push_back(FindSolver(row.smaller).value());
  }
  return contained;
}

}  // namespace ckplan
