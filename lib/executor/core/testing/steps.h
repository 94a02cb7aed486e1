// Small models on a backend, for this folder's tests.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/runner.h"
#include "lib/executor/core/step_operators.h"
#include "lib/executor/core/testing/test_backend.h"
#include "lib/executor/core/validate.h"
#include "lib/files/model/model.h"
#include "lib/files/model/step_graph.h"
#include "lib/files/model/testing/models.h"
#include "lib/planning/plan/model_variant.h"

namespace ckplan {

// A graph in ONNX's text format, "g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }", and the
// shapes of parameters without contents.
struct NetText {
  std::string graph;
  std::vector<ParameterShape> parameters = {};
  int opset = 20;
};

// A network with everything that makes backward hard: a statistic, in-place results, a residual
// connection, views, a weight shared by two nodes, a transposed weight, random numbers, and
// products whose backward reads both factors.
NetText SmallNet();

// A model with prepared operators, and with its constants in the backend's memory.
class SmallStep {
 public:
  // `batch` is the size of dimension N; 0 leaves N unbound. With FusedOperators::kCaptured, the
  // whole step is PyTorch's, with all that its autograd holds.
  SmallStep(Backend& backend, const NetText& net, int64_t batch = 0,
            ActivationType type = ActivationType::kOfModel,
            FusedOperators fused = FusedOperators::kNone, Autograd autograd = Autograd::kMinimal);
  ~SmallStep();

  const StepGraph& step() const;
  const StepOperators& operators() const;
  ConstantStore& constants();

  // Returns the step's graph with workspaces and sizes rounded up to the backend's alignment.
  SizedGraph Graph() const;
  PlacedProgram KeepAll() const;
  // Keeps each node's results with a probability of `percent` %.
  PlacedProgram Random(Rng& rng, int percent) const;
  // Like Random, but also moves tensors and gradients to the host and back at random.
  PlacedProgram RandomMoves(Rng& rng, int percent) const;
  // Makes steps in a random order that need not be mirrored (lib/problem/schedule/schedule.h).
  // After each step, drops results with a probability of `percent` %.
  PlacedProgram RandomOrder(Rng& rng, int percent) const;

  // Runs one step with the counting allocator. The gradients are then in constants().
  double Run(const PlacedProgram& plan, LossKind kind);
  // Records one step in an arena, and replays it `times` times. Returns the losses, or nothing if
  // the backend does not record.
  std::vector<double> RunRecorded(const PlacedProgram& plan, LossKind kind, int times);
  ValidationReport Validate(const PlacedProgram& keep_all, const PlacedProgram& plan,
                            int timed_runs = 0);
  ValidationReport Validate(const PlacedProgram& keep_all, const PlacedProgram& plan,
                            const ValidateOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs the check once for each type in which the backend can store activations.
inline void ForEachType(void (*check)(ActivationType)) {
  for (const ActivationType type : StoredTypes(*MakeTestBackend())) {
    CAPTURE(NameOf(type));
    check(type);
  }
}

}  // namespace ckplan
