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

// A running program and the addresses of its buffers, for observers.
struct RunState {
  const Program& program;
  std::vector<void*> address;  // One for each buffer; null while the buffer does not exist.
};

// Called before and after every action. An error that it returns ends the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Whether operators may be run as one (fusion.h). If so, their actions still come one by one, but
  // all the work is done at the last of them, and results that only they read are not written.
  virtual bool allows_fusion() const { return false; }
  virtual Result<Done> Before(const Action& action, const RunState& state) = 0;
  virtual Result<Done> After(const Action& action, const RunState& state) = 0;
};

// A step whose work is recorded, between its losses, at the addresses where it ran. It holds
// pointers to the program.
struct RecordedStep {
  struct Piece {
    size_t begin = 0, end = 0;           // Its actions: one loss, or all between two of them.
    std::unique_ptr<RecordedWork> work;  // Null for a loss.
    std::vector<void*> address;          // For a loss: as in RunState.
  };
  const Program* program = nullptr;
  std::vector<Piece> pieces;
};

class Runner {
 public:
  // The arguments must outlive the runner. `spare_workspace` is device memory as large as the
  // largest workspace of `operators`; calls use it where the program has no workspace, or one that
  // is too small.
  Runner(Backend& backend, const StepGraph& step, const StepOperators& operators,
         ConstantStore& constants, const Loss& loss, uint64_t seed, void* spare_workspace);

  // Runs one training step and returns its loss. The gradients of the parameters are then in the
  // constant store. Random operators draw other numbers for each `number`. kInfeasible: there is no
  // memory for a buffer. kCheckFailed: a call needs a buffer that does not exist; the message names
  // the step and the tensor. Operators that the backend can join are run as one, unless the
  // observer forbids it.
  Result<double> Run(const Program& program, BufferMemory& memory, RunObserver* observer,
                     uint64_t number = 0);

  // Runs one step, of number 0, in an arena, and records it. Buffers must keep their addresses
  // until the last run of the recording. Returns null if the backend does not record. kUnsupported:
  // the host computes some operators.
  Result<std::unique_ptr<RecordedStep>> Record(const Program& program, BufferMemory& arena);
  // Runs the step again, and returns its loss. The observer is called at the first and the last
  // action of each piece, and may be null.
  Result<double> RunRecorded(const RecordedStep& recorded, RunObserver* observer);

 private:
  // Gives the work of these actions to the device; no loss is among them.
  Result<Done> Give(const FusedProgram& fused, size_t begin, size_t end, RunState& state,
                    BufferMemory& memory);
  Result<Done> RunPiece(const RecordedStep::Piece& piece, const Program& program, double& loss);
  Result<Done> CheckNothingIsLeft(const RunState& state) const;
  Result<Done> Execute(const Action& action, RunState& state, BufferMemory& memory, double& loss);
  Result<Done> Forward(const Action& action, const RunState& state);
  Result<Done> Backward(const Action& action, const RunState& state);
  static Result<Done> Transfer(const Action& action, const RunState& state, HostCopies& host);
  Result<Done> RunLoss(const Action& action, const RunState& state, double& loss);

  // The addresses of one call's operands; null where an operand has no memory.
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

// Returns the name of a step, for example "step 12 (backward of \"conv3\")".
std::string StepText(const StepGraph& step, const Program& program, const Action& action);
// Returns the contents of a buffer in words: "\"relu1\"", "the gradient of \"relu1\"", "the
// workspace of \"conv3\"".
std::string BufferText(const StepGraph& step, const Program& program, int32_t buffer);

}  // namespace ckplan
