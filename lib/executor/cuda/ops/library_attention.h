// Fused attention by a library (lib/executor/cuda/libraries.h), where it takes the
// operator: in bfloat16, with as many heads of keys as of queries, of multiples of 8 elements, and
// with one mask or bias that gets no gradient, or causal.
//
// A mask or bias becomes a bias of all queries and keys in the workspace. Where it hides a key it
// is not -infinity but a number so low that the key's probability is 0: sums over hidden keys alone
// then are no NaN. Rows that see no key are made zeros afterwards, as kernels of our own make them.
// A mask that fills with a finite number must fill with one as low. A row that it hides wholly has
// equal probabilities then, and its gradient reaches queries and keys, unlike in kernels of our
// own.
//
// One call computes all gradients. Those whose turn comes later wait in the workspace.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/libraries.h"
#include "lib/executor/cuda/ops/flash_tiles.h"
#include "lib/problem/ops/attention.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

class AttentionByLibrary {
 public:
  // Fails with kUnsupported if the library does not take the operator; the message says why, as in
  // MayHaveOwnKernels. `task` is the operator's, without addresses.
  static Result<std::unique_ptr<AttentionByLibrary>> Prepare(const OpSpec& spec, Device& device,
                                                             const FusedAttentionShape& shape,
                                                             const FlashTask& task);

  OpWorkspace workspace() const { return {forward_plan_.total(), backward_plan_.total()}; }
  std::vector<LibraryCall> Calls() const;
  void Forward(const ForwardCall& call) const;  // The output is read.
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) const;

 private:
  AttentionByLibrary(const OpSpec& spec, Device& device, const FusedAttentionShape& shape,
                     const FlashTask& task);

  struct Places {  // Offsets in a workspace.
    int64_t library = 0, bias = 0, is_seen = 0;
  };
  void PlanTerm(Places& places, WorkspacePlan& plan) const;
  // Returns the bias in the workspace, or null if there is none.
  const void* PrepareBias(std::span<const void* const> inputs, const Places& places,
                          void* workspace) const;

  Device& device_;
  FlashTask task_;
  LibraryAttentionShape shape_;
  FlashTerm term_;            // Without address.
  size_t term_position_ = 0;  // 0: there is none.
  bool keeps_log_sums_ = false;
  std::unique_ptr<LibraryAttention> forward_, backward_;
  WorkspacePlan forward_plan_, backward_plan_;
  Places forward_places_, backward_places_;
  int64_t log_sums_ = 0;  // Offset, if they are not kept.
  std::array<bool, 3> wants_ = {};
  size_t first_ = 0;                     // The first of q, k and v whose gradient is asked for.
  std::array<int64_t, 3> waiting_ = {};  // Offsets of gradients.
  std::array<int64_t, 3> elements_ = {};
};

}  // namespace ckplan::cuda
