// Checks a run as it proceeds. Every buffer that is read must hold, bit for bit, what was last
// written to it, and every tensor and gradient must equal the one that the reference run computed.
// Backward computes the gradients of a node's inputs one by one. Before each, the watch inspects
// everything that it reads: the operands, and the workspace, where one input may leave data for the
// next.
//
// Together with the poison in the arena, this proves what accounting alone cannot: that freed
// memory is not read, that live buffers don't overlap, and that a recomputed tensor equals the
// dropped one. A GPU's arithmetic turns poison into an ordinary NaN, so no call may produce NaNs
// from operands without NaNs. A buffer that is being copied to the host must not change until the
// copy has been waited for, and a copy back must return what was copied. The cost is about one
// extra pass over the memory that each call touches.
#pragma once

#include <optional>
#include <vector>

#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/runner.h"

namespace ckplan {

// Digests of computed contents. The first watched run fills it in; all later runs are compared with
// it.
struct Reference {
  IdVector<TensorId, std::optional<BufferDigest>> tensors;
  // Digests of gradients that have received all contributions.
  IdVector<TensorId, std::optional<BufferDigest>> gradients;

  explicit Reference(const TensorGraph& graph)
      : tensors(graph.tensors().size()), gradients(graph.tensors().size()) {}
};

class BufferWatch final : public RunObserver {
 public:
  BufferWatch(Backend& backend, const StepGraph& step, const ConstantStore& constants,
              Reference& reference);

  // kCheckFailed: the contents are wrong; the message names the step and the tensor.
  Result<Done> Before(const Action& action, const RunState& state) override;
  Result<Done> After(const Action& action, const RunState& state) override;

 private:
  struct Record {
    BufferDigest digest;
    int64_t bytes = 0;
    ElementType type = ElementType::kFloat32;
    int32_t written_at = 0;  // The step that wrote it.
  };

  Result<Done> WatchTransfer(const Action& action, const RunState& state);
  Result<Done> CheckReads(const Action& action, const RunState& state);
  Result<Done> CheckRead(const Action& action, const RunState& state, int32_t buffer);
  void CheckConstants(const StepNode& node);
  Result<Done> CheckGradients(const Action& action, const RunState& state, const Call& call);
  // The rest of a tensor that is held for a part has no contents, but moves like others.
  void RecordRest(const Action& action, const RunState& state);
  Result<Done> RecordOutputs(const Action& action, const RunState& state);
  Result<Done> Write(const Action& action, const RunState& state, int32_t buffer,
                     const Operand& operand, const std::string& what);
  void RecordWorkspace(const Action& action, const RunState& state);
  Result<Done> Compare(std::optional<BufferDigest>& reference, const BufferDigest& digest,
                       const std::string& what, const Action& action, const RunState& state) const;
  std::optional<Record>& record(int32_t buffer) { return records_[static_cast<size_t>(buffer)]; }

  Backend& backend_;
  const StepGraph& step_;
  const ConstantStore& constants_;
  Reference& reference_;
  std::vector<std::optional<Record>> records_;  // By buffer.
  std::vector<Record> copied_;                  // By copy: the buffer that was copied.
  // Whether each root constant contains a NaN; filled in when constants are read.
  IdVector<ConstantId, std::optional<bool>> constant_has_nan_;
  bool reads_nan_ = false;  // True if the current action reads a NaN.
};

}  // namespace ckplan
