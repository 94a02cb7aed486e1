// Runs a program on a backend, action by action.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/buffer_memory.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/fusion.h"
#include "lib/executor/core/loss.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

// A running program and its buffers' addresses, for observers.
struct RunState {
  const Program& program;
  std::vector<void*> address;  // One per buffer; null while the buffer does not exist.
};

// Called before and after every action. Returning an error ends the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // True if operators may run as one (fusion.h). Their actions still come one by one, but all work
  // happens at the last one, and results that only they read are not written.
  virtual bool allows_fusion() const { return false; }
  virtual Result<Done> Before(const Action& action, const RunState& state) = 0;
  virtual Result<Done> After(const Action& action, const RunState& state) = 0;
};

// A step recorded in pieces between its losses, at the addresses where it ran. Holds pointers to
// the program.
struct RecordedStep {
  struct Piece {
    size_t begin = 0, end = 0;           // One loss, or all actions between two losses.
    std::unique_ptr<RecordedWork> work;  // Null for a loss.
    std::vector<void*> address;          // For losses; see RunState.
  };
  const Program* program = nullptr;
  std::vector<Piece> pieces;
};

class Runner {
 public:
  // The arguments must outlive the runner. `spare_workspace` is device memory of the size of the
  // largest workspace in `operators`, for calls whose workspace in the program is missing or too
  // small.
  Runner(Backend& backend, const StepGraph& step, const StepOperators& operators,
         ConstantStore& constants, const Loss& loss, uint64_t seed, void* spare_workspace);

  // Runs one training step and returns its loss. The parameters' gradients are then in the constant
  // store. Random operators draw new numbers for each `number`. Operators that the backend can join
  // run as one, unless the observer forbids it. kInfeasible: a buffer does not fit in memory.
  // kCheckFailed: a call needs a buffer that does not exist; the message names the step and the
  // tensor.
  Result<double> Run(const Program& program, BufferMemory& memory, RunObserver* observer,
                     uint64_t number = 0);

  // Runs one step, of number 0, in an arena, and records it. Buffers must keep their addresses
  // until the last run of the recording. Returns null if the backend does not record. kUnsupported:
  // the host computes some operators.
  Result<std::unique_ptr<RecordedStep>> Record(const Program& program, BufferMemory& arena);
  // Replays the step, and returns its loss. Calls the observer, if any, at the first and last
  // action of each piece.
  Result<double> RunRecorded(const RecordedStep& recorded, RunObserver* observer);

 private:
  // Submits the work of these actions, which include no loss, to the device.
  Result<Done> Submit(const FusedProgram& fused, size_t begin, size_t end, RunState& state,
                      BufferMemory& memory);
  Result<Done> RunPiece(const RecordedStep::Piece& piece, const Program& program, double& loss);
  Result<Done> CheckAllReleased(const RunState& state) const;
  Result<Done> Execute(const Action& action, RunState& state, BufferMemory& memory, double& loss);
  Result<Done> Forward(const Action& action, const RunState& state);
  Result<Done> Backward(const Action& action, const RunState& state);
  static Result<Done> Transfer(const Action& action, const RunState& state, HostCopies& host);
  Result<Done> RunLoss(const Action& action, const RunState& state, double& loss);

  // The addresses of a call's operands; null if an operand has no memory.
  struct Operands {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<const void*> readable_outputs;
    std::vector<const void*> output_gradients;
    void* statistic = nullptr;
    void* workspace = nullptr;
    uint64_t seed = 0;
  };
  Result<Operands> OperandsOf(const Action& action, const Call& call, const RunState& state) const;
  bool HasRoom(const Call& call, const RunState& state, int64_t bytes) const;
  void* WorkspaceOf(const Action& action, const Call& call, const RunState& state) const;
  void* ScratchOf(const Action& action, const Call& call, const RunState& state) const;
  Result<Done> RunFused(const FusedProgram::Group& group, size_t at, const RunState& state);

  Backend& backend_;
  const StepGraph& step_;
  const StepOperators& operators_;
  ConstantStore& constants_;
  const Loss& loss_;
  uint64_t seed_;
  void* spare_workspace_;
  uint64_t step_seed_ = 0;
};

// Describes a step, for example "step 12 (backward of \"conv3\")".
std::string StepText(const StepGraph& step, const Program& program, const Action& action);
// Describes the contents of a buffer: "\"relu1\"", "the gradient of \"relu1\"", "the workspace of
// \"conv3\"".
std::string BufferText(const StepGraph& step, const Program& program, int32_t buffer);

}  // namespace ckplan
