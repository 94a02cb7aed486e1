#include "cli/ckexec/limited_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/backend/forwarding_backend.h"
#include "lib/base/human_bytes.h"

namespace ckplan {
namespace {

// Counts allocated bytes, and refuses to exceed the limit.
class LimitedBackend final : public ForwardingBackend {
 public:
  LimitedBackend(std::unique_ptr<Backend> backend, Bytes limit)
      : ForwardingBackend(std::move(backend)), limit_(limit) {}

  int64_t AvailableBytes() const override {
    return std::min((limit_ - taken_).count(), ForwardingBackend::AvailableBytes());
  }
  Result<void*> Allocate(int64_t bytes) override {
    CKPLAN_RETURN_IF_ERROR(CheckLimit(bytes));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, ForwardingBackend::Allocate(bytes));
    Count(memory, bytes);
    return memory;
  }
  void Release(void* memory) override {
    Forget(memory);
    ForwardingBackend::Release(memory);
  }
  Result<void*> AllocatePooled(int64_t bytes) override {
    CKPLAN_RETURN_IF_ERROR(CheckLimit(bytes));
    CKPLAN_ASSIGN_OR_RETURN(void* memory, ForwardingBackend::AllocatePooled(bytes));
    Count(memory, bytes);
    return memory;
  }
  void ReleasePooled(void* memory) override {
    Forget(memory);
    ForwardingBackend::ReleasePooled(memory);
  }

 private:
  Result<Done> CheckLimit(int64_t bytes) const {
    if (Bytes(bytes) <= limit_ - taken_) return Done{};
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

  Bytes limit_;
  Bytes taken_;
  std::map<void*, Bytes> sizes_;
};

}  // namespace

std::unique_ptr<Backend> LimitMemory(std::unique_ptr<Backend> backend, Bytes limit) {
  return std::make_unique<LimitedBackend>(std::move(backend), limit);
}

}  // namespace ckplan
