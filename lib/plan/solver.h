// What all solvers share: the problem, what they return, and how they are driven.
//
// Every algorithm has at most one number of its own that trades memory for time: Kusumoto's budget
// B of Eq. 2, Chen's number of segments. That number is its knob. A solver answers for one setting
// of the knob; the planner (lib/planner) turns it until the simulated peak fits the user's budget,
// so `--budget` means the same for every algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/graph/vertex_graph.h"
#include "lib/plan/plan.h"
#include "lib/schedule/strategy.h"

namespace ckplan {

// What a solver is given. Read-only; small enough to write in a test.
struct Problem {
  const TensorGraph& graph;
  VertexGraph vertices;
  Objective objective = Objective::kTime;

  explicit Problem(const TensorGraph& g, Objective o = Objective::kTime)
      : graph(g), vertices(g), objective(o) {}
};

struct SolveLimits {
  std::stop_token stop;
};

// The knob's meaning and its useful settings, from min to max, both included.
struct Knob {
  enum class Kind {
    kNone,             // One plan and no other.
    kPaperBudget,      // Bytes of the paper's own objective; plans exist from `min` upwards.
    kSegmentCount,     // How many segments the chain is cut into.
    kLargestSegment,   // Bytes that a segment may hold; plans exist from `min` upwards.
    kSegmentBudget,    // Bytes that a segment may hold (Chen's B): less of it keeps more.
    kGridPoint,        // Which point of the paper's own grid of settings is taken.
    kResultsPerLevel,  // Results that each level of a recursion keeps.
  };
  Kind kind = Kind::kNone;
  int64_t min = 0;
  int64_t max = 0;
  int64_t preset = 0;  // The paper's own choice when no budget is given.
  // A search tries settings each of which is larger than the one before by one part in
  // `grid_steps`: more of them where a setting is solved quickly.
  int64_t grid_steps = 4;
};

struct SolveOutcome {
  Strategy strategy;
  PaperFigures paper;
  bool is_optimal = false;  // For the knob's setting, in the class that `guarantee` names.
  std::string guarantee;
};

// An algorithm made ready for one problem; what all settings share is computed once.
class PreparedSolver {
 public:
  virtual ~PreparedSolver() = default;
  virtual Knob knob() const = 0;
  // kInfeasible: no plan at this setting. kTimeout: stopped without one.
  virtual Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) = 0;
};

enum class Guarantee { kBaseline, kHeuristic, kOptimalInClass };
enum class GraphClass { kChainOfSplittingVertices, kAnyDag };

std::string_view NameOf(Guarantee guarantee);
std::string_view NameOf(GraphClass graphs);

struct SolverInfo {
  std::string_view name;     // "exact-dp": lower case, hyphens, never renamed.
  std::string_view summary;  // One line, under 72 characters.
  std::string_view paper;    // Authors, title, venue, year, or "none".
  Guarantee guarantee = Guarantee::kHeuristic;
  GraphClass graphs = GraphClass::kAnyDag;
  bool takes_objective = false;  // Plans for an objective: least time, or memory-centric.
  Result<std::unique_ptr<PreparedSolver>> (*prepare)(const Problem& problem,
                                                     const SolveLimits& limits) = nullptr;
};

}  // namespace ckplan
