// What ckplan suggests: commands that run as printed, other algorithms where one has nothing to
// cut, and what would fit in memory.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns the dimensions that an error of reading a model asks to bind: "N", "T".
std::vector<std::string> OpenDimsIn(const Error& error);

// Returns the values at which the step could end, if that would make the model one that can be
// planned: "l,z". Returns "" if nothing would.
std::string SuggestOutputs(const Error& error);

// Returns flags that give a size to each dimension that `error` asks for, " -D N=8 -D T=128", and
// end the step where it can be trained (--outputs), with which all models of the command can be
// read. Returns "" if the error asks for something else, if
// no example size is accepted, or if the command cannot be repeated.
std::string SuggestedSizes(const Options& options, const Error& error);

// If a list was typed for a command that makes one plan, returns the arguments of a `ckplan
// compare` that makes one for each item: " m.onnx -D N=8,16 -a best". Returns "" if no list was
// typed, or if the command could not run.
std::string SuggestComparison(const Options& options);

// Notes on a chain algorithm's plan for a graph that it cannot cut.

// Returns whether the graph has a splitting vertex at which algorithms for chains can cut
// (lib/problem/graph/vertex_graph.h).
bool CanBeCut(const TensorGraph& graph);

// Explains why a plan by an algorithm for chains keeps everything, and which algorithms take any
// graph. Empty if the plan runs something again, if the graph can be cut, and for all other
// algorithms.
std::string WhyNothingToCut(const Source& source, const Plan& plan);

// Suggests chen-frontier, with its figures and the command, if its plan is better than that of an
// algorithm for chains and most of the graph lies between two tensors that split it, as in an
// unrolled recurrent network. Better means faster within a budget or, without one, smaller and no
// slower. Empty otherwise.
std::string BetterAtFrontiers(const Source& source, const PlanRequest& request, const Plan& plan,
                              const Options& options, const SolveLimits& limits);

// The message if no plan fits --memory.

// Turns an error that no plan fits the memory of a request into "doesn't fit: the least is 8.61
// GiB; N=12 would". Other errors stay as they are. Searches for the largest size that fits, unless
// the model has none to choose; a stop leaves it out.
Error RefusalOfMemory(const Source& source, const PlanRequest& request, const Options& options,
                      const SolveLimits& limits, Error error);

}  // namespace ckplan
