// A backend that forwards all calls to another one: the base of backends that change a few calls.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/executor/backend/backend.h"

namespace ckplan {

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
