#include "lib/executor/core/host_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ckplan {

namespace {

constexpr int kHostPoison = 0xFF;  // Floats of such bytes are NaNs.

}  // namespace

HostCopies::HostCopies(Backend& backend, const Program& program, const HostCopiesOptions& options)
    : program_(program),
      poisons_(options.poisons),
      link_(backend.MakeCopyLink(options.link)),
      memory_(program.copies.size(), nullptr),
      under_way_(program.copies.size()) {}

HostCopies::~HostCopies() {
  link_->ReleaseHost(slab_);
  if (!is_apart_) return;
  for (void* memory : memory_) link_->ReleaseHost(memory);
  for (void* memory : forgotten_) link_->ReleaseHost(memory);
}

Result<std::unique_ptr<HostCopies>> HostCopies::InSlab(Backend& backend, const Program& program,
                                                       std::vector<Bytes> offsets, Bytes slab_bytes,
                                                       const HostCopiesOptions& options) {
  if (offsets.size() != program.copies.size()) {
    return MakeError(
        ErrorCode::kCheckFailed,
        fmt::format("the plan places {} copies on the host, but the step makes {}; plan it again",
                    offsets.size(), program.copies.size()));
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    const Bytes bytes = program.copies[i].bytes;
    if (offsets[i] >= Bytes(0) && bytes <= slab_bytes && offsets[i] <= slab_bytes - bytes) continue;
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("copy {} lies outside the host's {} bytes; plan it again", i,
                                 slab_bytes.count()));
  }
  std::unique_ptr<HostCopies> copies(new HostCopies(backend, program, options));
  CKPLAN_ASSIGN_OR_RETURN(copies->slab_, copies->link_->AllocateHost(slab_bytes.count()));
  copies->offsets_ = std::move(offsets);
  return copies;
}

Result<std::unique_ptr<HostCopies>> HostCopies::Apart(Backend& backend, const Program& program,
                                                      const HostCopiesOptions& options) {
  std::unique_ptr<HostCopies> copies(new HostCopies(backend, program, options));
  copies->is_apart_ = true;
  return copies;
}

Result<char*> HostCopies::Take(int32_t index) {
  const auto at = static_cast<size_t>(index);
  if (is_apart_) {
    CKPLAN_ASSIGN_OR_RETURN(memory_[at], link_->AllocateHost(copy(index).bytes.count()));
  } else {
    memory_[at] = static_cast<char*>(slab_) + offsets_[at].count();
  }
  live_ += copy(index).bytes;
  peak_ = std::max(peak_, live_);
  return static_cast<char*>(memory_[at]);
}

Result<Done> HostCopies::Out(int32_t index, const void* buffer) {
  const int64_t bytes = copy(index).bytes.count();
  CKPLAN_ASSIGN_OR_RETURN(char* const host, Take(index));
  if (poisons_) link_->FillHost(host, kHostPoison, bytes);
  under_way_[static_cast<size_t>(index)] = link_->CopyOut(host, buffer, bytes);
  return Done{};
}

void HostCopies::Drop(int32_t index) { link_->Wait(under_way_[static_cast<size_t>(index)]); }

void HostCopies::In(int32_t index, void* buffer) {
  const auto at = static_cast<size_t>(index);
  under_way_[at] = link_->CopyIn(buffer, memory_[at], copy(index).bytes.count());
}

void HostCopies::Arrive(int32_t index) { link_->Wait(under_way_[static_cast<size_t>(index)]); }

void HostCopies::Forget(int32_t index) {
  live_ -= copy(index).bytes;
  void* const memory = std::exchange(memory_[static_cast<size_t>(index)], nullptr);
  if (is_apart_) forgotten_.push_back(memory);  // The device may not have done its work yet.
}

}  // namespace ckplan
