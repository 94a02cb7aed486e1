// The device interface of the executor: memory and operators. The executor's core knows schedules
// and buffers but no kernels; a backend knows kernels but no schedules.
//
//   Prepare(spec) ─▶ PreparedOp ─ workspace() ─▶ the planner's figures, the arena
//                        ├─ Forward(call)
//                        └─ BackwardInput(call, i, gradient)    once for each input that needs one
//
// All pointers refer to device memory. One thread makes all calls to a backend. Calls may return
// before the work is done; Synchronize waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/result.h"
#include "lib/executor/backend/device_memory.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// How to compute the loss of one output of a training step.
enum class LossKind {
  kGiven,         // The output's gradient is random; the loss is their inner product.
  kCrossEntropy,  // Mean softmax cross-entropy against random labels.
};

// Returns the axis of an output that holds the class scores: the second axis of [N, C] and of
// images [N, C, H, W], the last axis of sequences [N, T, C].
inline size_t ClassAxis(const std::vector<int64_t>& dims) {
  if (dims.size() == 3) return 2;
  return dims.size() < 2 ? 0 : 1;
}

struct LossCall {
  LossKind kind = LossKind::kGiven;
  uint64_t seed = 0;  // Differs between outputs.
  const Operand& output;
  const void* contents = nullptr;
  void* gradient = nullptr;
};

// Bytes of scratch memory for one call. The contents are lost after the call, with one exception:
// the BackwardInput calls of one backward step run in input order and share a workspace, so a call
// may use what an earlier one left in it.
struct OpWorkspace {
  int64_t forward = 0;
  int64_t backward = 0;
};

// The algorithm that a vendor library chose.
struct EngineChoice {
  int64_t engine = 0;  // The library's own number for it.
  int64_t rank = 1;    // Its position among the library's recommendations, from 1.
  bool uses_tensor_cores = false;
  int64_t workspace = 0;  // In bytes.
};

// A call that an operator makes to a vendor library.
struct LibraryCall {
  std::string use;  // "forward", "input gradient", "weight gradient".
  EngineChoice choice;
};

// Every operand that is present has an address, even if it has no elements. A null pointer marks an
// absent operand.
struct ForwardCall {
  std::span<const void* const> inputs;  // By position; null if the operand is absent or not read.
  // By position; null if the output is never read. An elementwise operator must allow an output to
  // share the memory of an input of the same size, so it reads each element before it overwrites
  // it. Other operators' outputs never overlap their inputs.
  std::span<void* const> outputs;
  void* statistic = nullptr;  // spec.statistic_bytes bytes.
  void* workspace = nullptr;  // workspace().forward bytes; null for 0.
  // The seed for random operators. A recomputation gets the same seed as the first run.
  uint64_t seed = 0;
};

struct BackwardCall {
  std::span<const void* const> inputs;   // Null unless backward reads it or it is constant.
  std::span<const void* const> outputs;  // Null unless backward reads it.
  // Null where no gradient arrives, which counts as zero.
  std::span<const void* const> output_gradients;
  const void* statistic = nullptr;  // Null unless backward reads it.
  void* workspace = nullptr;        // workspace().backward bytes; null for 0.
  uint64_t seed = 0;                // The seed of the forward call.
};

// An operator with fixed shapes, ready to run. Its results depend, bit for bit, only on the call's
// arguments, not on addresses, time or earlier calls.
class PreparedOp {
 public:
  virtual ~PreparedOp() = default;
  virtual OpWorkspace workspace() const { return {}; }
  // Lists the library calls and the engines chosen for them, for display. workspace() already
  // includes their workspaces.
  virtual std::vector<LibraryCall> LibraryCalls() const { return {}; }
  // Writes every element of every output and of the statistic.
  virtual void Forward(const ForwardCall& call) = 0;
  // With (call, position, gradient): overwrites `gradient`, which has the shape of the input at
  // `position`, with that input's gradient. Called only for inputs with has_gradient, in ascending
  // order of position.
  virtual void BackwardInput(const BackwardCall&, size_t, void*) {
    CKPLAN_CHECK(false, "only operators with a gradient run backward");
  }
  // Where the host computes the operator for a device: why the device does not, in one clause
  // without a full stop, "its heads have 6 elements, no multiple of 8". Empty elsewhere. Such an
  // operator copies its operands to the host and back, and cannot be recorded.
  virtual std::string WhyOnHost() const { return {}; }
};

// One operator of a chain. Each one except the first reads the result of the one before it.
struct ChainedOp {
  const OpSpec* spec = nullptr;
  PreparedOp* op = nullptr;  // Null where only the specs matter.
  size_t carried = 0;        // Position of the input that the previous operator computed.
};

// Runs the forward passes of a chain of operators as one, with bitwise identical results.
// docs/executor.md says when the executor uses it.
class FusedForward {
 public:
  virtual ~FusedForward() = default;
  // Called when the first operator is due, with all its buffers except its first output. Its
  // workspace is released right after this.
  virtual void Begin(const ForwardCall&) {}
  // Called when the last operator is due, with one call per operator. Null: workspaces, inputs that
  // the chain itself computed, and outputs that only the chain reads. An output may share the
  // memory of an input, as in PreparedOp::Forward.
  virtual void Run(std::span<const ForwardCall> calls) = 0;
};

// A recorded sequence of device work that can be started as a whole.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void Start() = 0;
};

struct OpSupport {
  std::string type;  // "Conv"
  bool has_gradient = false;
  std::string limits;  // The unsupported part of the operator; may be empty.
};

// What Inspect finds in a buffer.
struct BufferDigest {
  uint64_t hash = 0;          // Equal contents have equal hashes, whatever the address.
  int64_t first_poison = -1;  // Index of the first float that equals kPoison; -1 if there is none.
  bool has_nan = false;       // True if any float is a NaN, including kPoison.

  bool operator==(const BufferDigest&) const = default;
};

class Backend : public DeviceMemory {
 public:
  virtual std::string_view name() const = 0;  // "cpu"
  virtual std::string Describe() const = 0;   // "oneDNN 3.2.0, 2 threads"
  virtual int64_t alignment() const = 0;      // In bytes. Buffer offsets are multiples of it.
  virtual std::vector<OpSupport> Operators() const = 0;  // In alphabetical order.
  // If false, all floats must be float32.
  virtual bool StoresBFloat16() const { return false; }

  // True if calls may return before their work is done.
  virtual bool IsAsynchronous() const { return false; }
  virtual std::unique_ptr<DeviceClock> MakeClock() { return std::make_unique<HostClock>(); }

  // kUnsupported: the backend has no kernel for this operator, or not for these attributes, shapes
  // or types.
  virtual Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) = 0;

  // Returns the element orders that the operator accepts for its tensors.
  virtual ElementOrders OrdersOf(const OpSpec&) const { return ElementOrders::kOfModel; }

  // Returns how many of these operators, counted from the first, Fuse can join. Below 2: none.
  virtual size_t FusibleLength(std::span<const ChainedOp>) const { return 0; }
  // Joins two or more operators, at most FusibleLength. The operators must outlive the result.
  virtual std::unique_ptr<FusedForward> Fuse(std::span<const ChainedOp>) {
    CKPLAN_CHECK(false, "Fuse is called only on backends that fuse operators");
  }

  // Calls `give` and records the device work that it submits instead of starting it. `give` may run
  // operators, AddScaled, Copy and Zero, but must not allocate, transfer to or from the host, or
  // wait. A backend that can't record returns null and doesn't call it.
  virtual std::unique_ptr<RecordedWork> Record(const std::function<void()>&) { return nullptr; }

  // Fills memory with kPoison, a bit pattern that arithmetic never produces; bytes after the last
  // whole multiple of 4 are filled with one bits.
  virtual void Poison(void* memory, int64_t bytes) = 0;
  // Computes into[i] += scale * from[i], for floats of the given type.
  virtual void AddScaled(void* into, const void* from, ElementType type, float scale,
                         int64_t count) = 0;
  // Computes the loss and writes its gradient, bitwise equal to LossOnHost
  // (lib/executor/core/loss.h). Returns nothing, and writes nothing, to let the executor compute
  // the loss on the host.
  virtual std::optional<double> RunLoss(const LossCall&) { return std::nullopt; }
  // Hashes the contents and searches floats for poison and other NaNs.
  virtual BufferDigest Inspect(const void* memory, int64_t bytes, ElementType type) = 0;
};

// The bits that Poison writes. They are a NaN as float32, and two NaNs (kBFloat16Poison) as
// bfloat16.
inline constexpr uint32_t kPoison = 0xFFF5FFF5;
inline constexpr uint16_t kBFloat16Poison = 0xFFF5;

// A backend that forwards all calls to another one: the base of backends that change a few calls.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  std::string_view name() const override { return backend_->name(); }
  std::string Describe() const override { return backend_->Describe(); }
  int64_t alignment() const override { return backend_->alignment(); }
  std::vector<OpSupport> Operators() const override { return backend_->Operators(); }
  bool StoresBFloat16() const override { return backend_->StoresBFloat16(); }
  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) override {
    return backend_->Prepare(spec);
  }

  ElementOrders OrdersOf(const OpSpec& spec) const override { return backend_->OrdersOf(spec); }
  std::unique_ptr<RecordedWork> Record(const std::function<void()>& give) override {
    return backend_->Record(give);
  }

  size_t FusibleLength(std::span<const ChainedOp> chain) const override {
    return backend_->FusibleLength(chain);
  }
  std::unique_ptr<FusedForward> Fuse(std::span<const ChainedOp> chain) override {
    return backend_->Fuse(chain);
  }

  int64_t AvailableBytes() const override { return backend_->AvailableBytes(); }
  Result<void*> Allocate(int64_t bytes) override { return backend_->Allocate(bytes); }
  void Release(void* memory) override { backend_->Release(memory); }
  Result<void*> AllocatePooled(int64_t bytes) override { return backend_->AllocatePooled(bytes); }
  void ReleasePooled(void* memory) override { backend_->ReleasePooled(memory); }
  void ResetPooledPeak() override { backend_->ResetPooledPeak(); }
  std::optional<int64_t> PooledPeak() override { return backend_->PooledPeak(); }
  bool IsAsynchronous() const override { return backend_->IsAsynchronous(); }
  std::unique_ptr<DeviceClock> MakeClock() override { return backend_->MakeClock(); }
  std::vector<MemoryUse> Overheads() const override { return backend_->Overheads(); }
  std::unique_ptr<CopyLink> MakeCopyLink(const CopyLinkOptions& options) override {
    return backend_->MakeCopyLink(options);
  }

  void Upload(void* to, const void* from, int64_t bytes) override {
    backend_->Upload(to, from, bytes);
  }
  void Download(void* to, const void* from, int64_t bytes) override {
    backend_->Download(to, from, bytes);
  }
  void Copy(void* to, const void* from, int64_t bytes) override { backend_->Copy(to, from, bytes); }
  void Poison(void* memory, int64_t bytes) override { backend_->Poison(memory, bytes); }
  void Zero(void* memory, int64_t bytes) override { backend_->Zero(memory, bytes); }
  void AddScaled(void* into, const void* from, ElementType type, float scale,
                 int64_t count) override {
    backend_->AddScaled(into, from, type, scale, count);
  }
  std::optional<double> RunLoss(const LossCall& call) override { return backend_->RunLoss(call); }
  BufferDigest Inspect(const void* memory, int64_t bytes, ElementType type) override {
    return backend_->Inspect(memory, bytes, type);
  }
  void Synchronize() override { backend_->Synchronize(); }

 private:
  std::unique_ptr<Backend> backend_;
};

}  // namespace ckplan
