// What all solvers share: the problem, what they return, and how they are driven.
//
// A solver answers for one setting of its knob (knob.h); the planner (lib/planning/planner) turns
// it until the simulated peak fits the user's budget, so `--budget` means the same for every
// algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/decisions.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/objective.h"
#include "lib/planning/plan/paper_figures.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The input of a solver. It is read-only, and small enough to write in a test.
struct Problem {
  const TensorGraph& graph;
  VertexGraph vertices;
  Objective objective = Objective::kTime;
  // These two are only for the algorithm `given`.
  const Decisions* decisions = nullptr;
  StepOrder order = StepOrder::kModel;
  // Nodes that run once, for algorithms that can obey this; the planner makes the plans of all
  // others obey. Null if there are none.
  const IdVector<NodeId, bool>* runs_once = nullptr;

  explicit Problem(const TensorGraph& g, Objective o = Objective::kTime)
      : graph(g), vertices(g), objective(o) {}
};

// When `stop` is requested, a search ends with the best that it has found, or with kTimeout. Code
// without a search need not check it: a StopScope (lib/base/stop.h) around the whole ends whatever
// takes too long.
struct SolveLimits {
  std::stop_token stop;
  // The memory that this process may use. It is only for messages: the program makes an allocation
  // beyond it throw std::bad_alloc.
  std::optional<Bytes> memory = std::nullopt;
  // One of many settings that a search tries: a good outcome now is better than a proven one.
  bool is_probe = false;
};

// The setting that the remedy of an error for lack of memory names.
inline constexpr std::string_view kMemoryLimitField = "memory_limit";

// The beginning of the guarantee of a plan that is the best of a search which a stop has ended.
inline constexpr std::string_view kStoppedEarly = "stopped early: ";

struct SolveOutcome {
  Strategy strategy;
  PaperFigures paper;
  // The outcome is optimal for this setting, in the class that `guarantee` names.
  bool is_optimal = false;
  // The outcome is that of a probe (SolveLimits): the same setting may have a better outcome that
  // takes longer to find.
  bool is_rough = false;
  std::string guarantee;
};

// An algorithm prepared for one problem, so that what all settings share is computed once.
class PreparedSolver {
 public:
  virtual ~PreparedSolver() = default;
  virtual Knob knob() const = 0;
  // kInfeasible: there is no plan at this setting. kTimeout: stopped before one was found.
  virtual Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) = 0;
};

class JointGraph;
class PreparedRunSolver;  // lib/planning/plan/run_solver.h

// Prepares an algorithm that plans sequences of runs of any training step. `graph` must outlive the
// returned object.
using PrepareRuns = Result<std::unique_ptr<PreparedRunSolver>> (*)(const JointGraph& graph,
                                                                   const SolveLimits& limits);

struct OffloadTerms;  // lib/planning/plan/run_solver.h

// Prepares an algorithm whose plans move values to the host and back. Both must outlive the
// returned object.
using PrepareOffload = Result<std::unique_ptr<PreparedRunSolver>> (*)(const JointGraph& graph,
                                                                      const OffloadTerms& terms,
                                                                      const SolveLimits& limits);

enum class Guarantee { kNone, kBaseline, kHeuristic, kOptimalInClass };
enum class GraphClass { kChainOfSplittingVertices, kAnyDag };

std::string_view NameOf(Guarantee guarantee);
std::string_view NameOf(GraphClass graphs);

struct SolverInfo {
  std::string_view name;     // "exact-dp": lower case, hyphens, never renamed.
  std::string_view summary;  // One line, under 72 characters.
  std::string_view paper;    // Authors, title, venue and year, or "none".
  Guarantee guarantee = Guarantee::kHeuristic;
  GraphClass graphs = GraphClass::kAnyDag;
  bool takes_objective = false;  // It can plan for least time or memory-centrically.
  Knob::Kind knob = Knob::Kind::kNone;
  // Decides on the nodes of a forward graph.
  Result<std::unique_ptr<PreparedSolver>> (*prepare)(const Problem& problem,
                                                     const SolveLimits& limits) = nullptr;
  // Decides on the operations of a training step; null for algorithms that need a forward graph.
  PrepareRuns prepare_runs = nullptr;
  // Moves values to the host and back; null for algorithms whose plans leave all on the device.
  PrepareOffload prepare_offload = nullptr;
};

}  // namespace ckplan
