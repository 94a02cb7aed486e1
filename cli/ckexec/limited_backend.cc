#include "cli/ckexec/limited_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/human_bytes.h"

namespace ckplan {
namespace {

// Passes all on, and counts what is allocated.
class LimitedBackend final : public Backend {
 public:
  LimitedBackend(std::unique_ptr<Backend> backend, Bytes limit)
      : backend_(std::move(backend)), limit_(limit) {}

  std::string_view name() const override { return backend_->name(); }
  std::string Describe() const override { return backend_->Describe(); }
  int64_t alignment() const override { return backend_->alignment(); }
  std::vector<OpSupport> Operators() const override { return backend_->Operators(); }
  bool StoresBFloat16() const override { return backend_->StoresBFloat16(); }
  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) override {
    return backend_->Prepare(spec);
  }
  int64_t AvailableBytes() const override {
    return std::min((limit_ - taken_).count(), backend_->AvailableBytes());
  }

  Result<void*> Allocate(int64_t bytes) override {
    CKPLAN_RETURN_IF_ERROR(CheckLimit(bytes));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, backend_->Allocate(bytes));
    Count(memory, bytes);
    return memory;
  }
  void Release(void* memory) override {
    Forget(memory);
    backend_->Release(memory);
  }
  Result<void*> AllocatePooled(int64_t bytes) override {
    CKPLAN_RETURN_IF_ERROR(CheckLimit(bytes));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, backend_->AllocatePooled(bytes));
    Count(memory, bytes);
    return memory;
  }
  void ReleasePooled(void* memory) override {
    Forget(memory);
    backend_->ReleasePooled(memory);
  }
  void ResetPooledPeak() override { backend_->ResetPooledPeak(); }
  std::optional<int64_t> PooledPeak() override { return backend_->PooledPeak(); }
  std::vector<MemoryUse> Overheads() const override { return backend_->Overheads(); }

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
  BufferDigest Inspect(const void* memory, int64_t bytes, ElementType type) override {
    return backend_->Inspect(memory, bytes, type);
  }
  void Synchronize() override { backend_->Synchronize(); }

 private:
  Result<Done> CheckLimit(int64_t bytes) const {
    if (taken_ + Bytes(bytes) <= limit_) return Done{};
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("--memory-limit {} is not enough: {} are taken, and {} more are "
                                 "needed; raise it, or take a smaller batch",
                                 HumanBytes(limit_), HumanBytes(taken_), HumanBytes(Bytes(bytes))));
  }
  void Count(void* memory, int64_t bytes) {
    taken_ += Bytes(bytes);
    sizes_[memory] = Bytes(bytes);
  }
  void Forget(void* memory) {
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    taken_ -= found->second;
    sizes_.erase(found);
  }

  std::unique_ptr<Backend> backend_;
  Bytes limit_;
  Bytes taken_;
  std::map<void*, Bytes> sizes_;
};

}  // namespace

std::unique_ptr<Backend> LimitMemory(std::unique_ptr<Backend> backend, Bytes limit) {
  return std::make_unique<LimitedBackend>(std::move(backend), limit);
}

}  // namespace ckplan
