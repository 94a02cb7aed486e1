// Watches a run. Every buffer that is read must hold, bit for bit, what was last written there, and
// every tensor and gradient must equal the one that the reference run computed.
//
// Together with the poison in the arena, this proves what accounting alone cannot: that freed
// memory is not read, that no two live buffers share memory, and that a recomputed tensor equals
// the one that was dropped. It costs about one more pass over the memory that each step touches.
#pragma once

#include <optional>
#include <vector>

#include "lib/exec/runner.h"

namespace ckplan {

// Digests of the contents that a run computed. The first watched run fills it; all later runs are
// compared with it.
struct Reference {
  IdVector<TensorId, std::optional<BufferDigest>> tensors;
  // Digests of gradients once they are complete.
  IdVector<TensorId, std::optional<BufferDigest>> gradients;

  explicit Reference(const TensorGraph& graph)
      : tensors(graph.tensors().size()), gradients(graph.tensors().size()) {}
};

class BufferWatch final : public RunObserver {
 public:
  BufferWatch(Backend& backend, const StepGraph& step, Reference& reference);

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

  Result<Done> CheckReads(const Action& action, const RunState& state);
  Result<Done> CheckRead(const Action& action, const RunState& state, int32_t buffer) const;
  Result<Done> CheckGradients(const Action& action, const RunState& state, const Call& call);
  Result<Done> RecordOutputs(const Action& action, const RunState& state);
  Result<Done> Write(const Action& action, const RunState& state, int32_t buffer,
                     const Operand& operand);
  Result<Done> Compare(std::optional<BufferDigest>& reference, const BufferDigest& digest,
                       const std::string& what, const Action& action, const RunState& state) const;
  std::optional<Record>& record(int32_t buffer) { return records_[static_cast<size_t>(buffer)]; }

  Backend& backend_;
  const StepGraph& step_;
  Reference& reference_;
  std::vector<std::optional<Record>> records_;  // By buffer.
  int32_t checked_call_ = -1;
};

}  // namespace ckplan
