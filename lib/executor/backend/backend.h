// What a device must be able to do for the executor: hold memory and run operators. The executor's
// core knows schedules and buffers but no kernels; a backend knows kernels but no schedules.
//
//   Prepare(spec) ─▶ PreparedOp ─ workspace() ─▶ the planner's figures, the arena
//                        ├─ Forward(call)
//                        └─ BackwardInput(call, i, gradient)    once for each input that needs one
//
// All pointers are to memory of the device. All calls of one backend come from one thread, in
// order; they may return before the work is done, and Synchronize waits for it.
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

// The loss of one output of a training step, for backends that compute it.
enum class LossKind {
  kGiven,         // The output's gradient comes from a seed; the loss is their inner product.
  kCrossEntropy,  // Mean of softmax cross-entropy against labels from a seed.
};

// Returns the axis of an output that holds the scores of the classes: the second axis of [N, C] and
// of images [N, C, H, W], the last axis of sequences [N, T, C].
inline size_t ClassAxis(const std::vector<int64_t>& dims) {
  if (dims.size() == 3) return 2;
  return dims.size() < 2 ? 0 : 1;
}

struct LossCall {
  LossKind kind = LossKind::kGiven;
  uint64_t seed = 0;  // Each output has its own.
  const Operand& output;
  const void* contents = nullptr;
  void* gradient = nullptr;
};

// Bytes of scratch memory that a call needs while it runs. Its contents are lost after the call,
// with one exception: the BackwardInput calls of one backward step, made in the order of the
// inputs, share one workspace, and a call may use what an earlier one has left there.
struct OpWorkspace {
  int64_t forward = 0;
  int64_t backward = 0;
};

// What a vendor's library chose to compute something with.
struct EngineChoice {
  int64_t engine = 0;  // The library's own number for it.
  int64_t rank = 1;    // Its place among what the library recommends, from 1.
  bool uses_tensor_cores = false;
  int64_t workspace = 0;  // In bytes.
};

// A call of a vendor's library that an operator makes.
struct LibraryCall {
  std::string use;  // "forward", "input gradient", "weight gradient".
  EngineChoice choice;
};

// An operand that is present has an address, even without elements. A null pointer marks an absent
// operand.
struct ForwardCall {
  std::span<const void* const> inputs;  // By position; null if the operand is absent or not read.
  // By position; null if the output is never read. Elementwise operators must allow an output to
  // have the memory of an input of the same size: they read each element before they write it. For
  // other operators, outputs never overlap inputs.
  std::span<void* const> outputs;
  void* statistic = nullptr;  // spec.statistic_bytes bytes.
  void* workspace = nullptr;  // workspace().forward bytes; null for 0.
  // The seed for random operators; a recomputation gets the seed of the first run.
  uint64_t seed = 0;
};

struct BackwardCall {
  std::span<const void* const> inputs;   // Null unless read by backward or constant.
  std::span<const void* const> outputs;  // Null unless read by backward.
  // Null where no gradient arrives; the missing gradient counts as zero.
  std::span<const void* const> output_gradients;
  const void* statistic = nullptr;  // Null unless read by backward.
  void* workspace = nullptr;        // workspace().backward bytes; null for 0.
  uint64_t seed = 0;                // The seed of the forward call.
};

// An operator with fixed shapes, ready to run. Its results depend, bit for bit, only on the
// arguments of the call: not on addresses, time or earlier calls.
class PreparedOp {
 public:
  virtual ~PreparedOp() = default;
  virtual OpWorkspace workspace() const { return {}; }
  // Returns the calls for which a library chose an engine, for people to read. Their workspaces are
  // parts of workspace().
  virtual std::vector<LibraryCall> LibraryCalls() const { return {}; }
  // Writes every element of every output and of the statistic.
  virtual void Forward(const ForwardCall& call) = 0;
  // Overwrites `gradient`, which has the shape of the input at `position`, with that input's
  // gradient. Called only for inputs with has_gradient, in ascending order of positions.
  virtual void BackwardInput(const BackwardCall& call, size_t position, void* gradient) = 0;
  // Where the host computes the operator for a device: why the device does not, in one clause
  // without a full stop, "its heads have 6 elements, no multiple of 8". Empty elsewhere. Such an
  // operator copies its operands to the host and back, and cannot be recorded.
  virtual std::string WhyOnHost() const { return {}; }
};

// The base of operators whose inputs all lack a gradient.
class OpWithoutGradient : public PreparedOp {
 public:
  void BackwardInput(const BackwardCall&, size_t, void*) final {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }
};

// One of several operators that follow each other: each but the first reads what the one before it
// has made.
struct ChainedOp {
  const OpSpec* spec = nullptr;
  PreparedOp* op = nullptr;  // Null where only the specs matter.
  size_t carried = 0;        // Position of the input that the operator before it has made.
};

// The forward passes of a chain of operators, run as one. The results are those of the operators,
// bit for bit. docs/executor.md says when the executor asks for it.
class FusedForward {
 public:
  virtual ~FusedForward() = default;
  // Called when it is the first operator's turn, with all of its buffers but its first output: the
  // last moment at which its workspace exists.
  virtual void Begin(const ForwardCall&) {}
  // Called when it is the last operator's turn, with a call for each of them. Outputs that nothing
  // else reads are null, and so are inputs that the chain itself has made, and workspaces. An
  // operator may be given an output with the memory of an input, as in PreparedOp::Forward.
  virtual void Run(std::span<const ForwardCall> calls) = 0;
};

// Work of a device that was recorded, and can be started again as a whole.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void Start() = 0;
};

struct OpSupport {
  std::string type;  // "Conv"
  bool has_gradient = false;
  std::string limits;  // The part of the operator that is not supported; may be empty.
};

// The result of Inspect: facts about the contents of a buffer.
struct BufferDigest {
  uint64_t hash = 0;          // Equal contents have equal hashes, whatever the address.
  int64_t first_poison = -1;  // Index of the first float that equals kPoison; -1 if there is none.
  bool has_nan = false;       // Whether any float is a NaN, kPoison included.

  bool operator==(const BufferDigest&) const = default;
};

class Backend : public DeviceMemory {
 public:
  virtual std::string_view name() const = 0;  // "cpu"
  virtual std::string Describe() const = 0;   // "oneDNN 3.2.0, 2 threads"
  virtual int64_t alignment() const = 0;      // In bytes; offsets of buffers are multiples of it.
  virtual std::vector<OpSupport> Operators() const = 0;  // In alphabetical order.
  // Returns whether operands may be kBFloat16. If not, all floats must be float32.
  virtual bool StoresBFloat16() const { return false; }

  // Returns whether calls may return before their work is done.
  virtual bool IsAsynchronous() const { return false; }
  virtual std::unique_ptr<DeviceClock> MakeClock() { return std::make_unique<HostClock>(); }

  // kUnsupported: there is no kernel for this operator, or none for these attributes, shapes or
  // types.
  virtual Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) = 0;

  // Returns in which orders of their elements the operator takes its tensors.
  virtual ElementOrders OrdersOf(const OpSpec&) const { return ElementOrders::kOfModel; }

  // Returns how many of these operators, from the first on, Fuse accepts; below 2: none.
  virtual size_t FusibleLength(std::span<const ChainedOp>) const { return 0; }
  // Joins two or more operators, at most FusibleLength. They must outlive the result.
  virtual std::unique_ptr<FusedForward> Fuse(std::span<const ChainedOp>) {
    CKPLAN_CHECK(false, "a backend that joins no operators is not asked to");
  }

  // Calls `give`, and records the work that it gives to the device instead of starting it. That may
  // be operators, AddScaled, Copy and Zero; nothing may be allocated, moved to or from the host, or
  // waited for. Returns null, and does not call it, if the backend records nothing.
  virtual std::unique_ptr<RecordedWork> Record(const std::function<void()>&) { return nullptr; }

  // Fills memory with kPoison, a bit pattern that arithmetic never produces; bytes after the last
  // whole multiple of 4 are filled with one bits.
  virtual void Poison(void* memory, int64_t bytes) = 0;
  // Computes into[i] += scale * from[i], for floats of the given type.
  virtual void AddScaled(void* into, const void* from, ElementType type, float scale,
                         int64_t count) = 0;
  // Returns the loss and writes its gradient, to the same bits as LossOnHost
  // (lib/executor/core/loss.h). Returns nothing, and writes nothing, if the executor shall compute
  // it on the host.
  virtual std::optional<double> RunLoss(const LossCall&) { return std::nullopt; }
  // Hashes the contents and, where they are floats, looks for poison and other NaNs.
  virtual BufferDigest Inspect(const void* memory, int64_t bytes, ElementType type) = 0;
};

// The bits that Poison writes. Read as float32 they are a NaN, and read as bfloat16 they are two
// NaNs, each of which is kBFloat16Poison.
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
