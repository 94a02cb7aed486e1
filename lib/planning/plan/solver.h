// The interface of solvers: the problem, their results, and how they are called.
//
// A solver finds a plan for one setting of its knob (knob.h). The planner (lib/planning/planner)
// adjusts the setting until the simulated peak fits in the user's budget, so `--budget` means the
// same for every algorithm.
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

// A solver's input. It is read-only, and small enough to write by hand in a test.
struct Problem {
  const TensorGraph& graph;
  VertexGraph vertices;
  Objective objective = Objective::kTime;
  // These two are only for the algorithm `given`.
  const Decisions* decisions = nullptr;
  StepOrder order = StepOrder::kModel;
  // Nodes that must run once, for algorithms that support it; the planner adapts the plans of
  // others. Null if there are none.
  const IdVector<NodeId, bool>* runs_once = nullptr;

  explicit Problem(const TensorGraph& g, Objective o = Objective::kTime)
      : graph(g), vertices(g), objective(o) {}
};

// When `stop` is requested, a search returns the best outcome so far, or kTimeout. Code without a
// search need not check it: an enclosing StopScope (lib/base/stop.h) ends whatever takes too long.
struct SolveLimits {
  std::stop_token stop;
  // The memory limit of this process, for messages only: the program makes larger allocations throw
  // std::bad_alloc.
  std::optional<Bytes> memory = std::nullopt;
  // One of many settings in a search: a good outcome now is better than a proven one later.
  bool is_probe = false;
};

// The setting that the remedy of an out-of-memory error names.
inline constexpr std::string_view kMemoryLimitField = "memory_limit";

// Prefix of the guarantee of a plan from a search that was stopped.
inline constexpr std::string_view kStoppedEarly = "stopped early: ";

struct SolveOutcome {
  Strategy strategy;
  PaperFigures paper;
  // Optimal for this setting, in the class that `guarantee` names.
  bool is_optimal = false;
  // From a probe (SolveLimits): the same setting may have a better outcome that takes longer.
  bool is_rough = false;
  std::string guarantee;
};

// An algorithm prepared for one problem, so that work shared by all settings is done once.
class PreparedSolver {
 public:
  virtual ~PreparedSolver() = default;
  virtual Knob knob() const = 0;
  // kInfeasible: no plan exists at this setting. kTimeout: stopped before finding one.
  virtual Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) = 0;
};

class JointGraph;
class PreparedRunSolver;  // lib/planning/plan/run_solver.h

// Prepares an algorithm that plans sequences of runs for any training step. `graph` must outlive
// the result.
using PrepareRuns = Result<std::unique_ptr<PreparedRunSolver>> (*)(const JointGraph& graph,
                                                                   const SolveLimits& limits);

struct OffloadTerms;  // lib/planning/plan/run_solver.h

// Prepares an algorithm whose plans move values to the host and back. Both arguments must outlive
// the result.
using PrepareOffload = Result<std::unique_ptr<PreparedRunSolver>> (*)(const JointGraph& graph,
                                                                      const OffloadTerms& terms,
                                                                      const SolveLimits& limits);

enum class Guarantee { kNone, kBaseline, kHeuristic, kOptimalInClass };
enum class GraphClass { kChainOfSplittingVertices, kAnyDag };

std::string_view NameOf(Guarantee guarantee);
std::string_view NameOf(GraphClass graphs);

struct SolverInfo {
  std::string_view name;     // "exact-dp": lower case with hyphens, never renamed.
  std::string_view summary;  // One line, under 72 characters.
  std::string_view paper;    // Authors, title, venue and year, or "none".
  Guarantee guarantee = Guarantee::kHeuristic;
  GraphClass graphs = GraphClass::kAnyDag;
  bool takes_objective = false;  // It can minimize time or memory.
  Knob::Kind knob = Knob::Kind::kNone;
  // Decides on the nodes of a forward graph.
  Result<std::unique_ptr<PreparedSolver>> (*prepare)(const Problem& problem,
                                                     const SolveLimits& limits) = nullptr;
  // Decides on the operations of a training step; null for algorithms that need a forward graph.
  PrepareRuns prepare_runs = nullptr;
  // Moves values to the host and back; null for algorithms that never offload.
  PrepareOffload prepare_offload = nullptr;
};

}  // namespace ckplan
