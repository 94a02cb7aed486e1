#include "lib/executor/core/buffer_memory.h"

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

Result<std::unique_ptr<HostCopies>> HostCopies::CreateInSlab(Backend& backend,
                                                             const Program& program,
                                                             std::vector<Bytes> offsets,
                                                             Bytes slab_bytes,
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

Result<std::unique_ptr<HostCopies>> HostCopies::CreateSeparate(Backend& backend,
                                                               const Program& program,
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
  if (is_apart_) forgotten_.push_back(memory);  // Device work that uses it may still be queued.
}

namespace {

// Avoids additions, because a sum of numbers from a file may overflow.
bool LiesWithin(Bytes offset, Bytes bytes, Bytes slab) {
  return offset >= Bytes(0) && bytes >= Bytes(0) && bytes <= slab && offset <= slab - bytes;
}

}  // namespace

Result<void*> BufferMemory::Begin(int32_t index, int32_t step) {
  CKPLAN_ASSIGN_OR_RETURN(void* memory, Take(index));
  Count(index, 1);
  if (live_.total > peak_.total) {
    peak_ = live_;
    peak_.step = step;
  }
  return memory;
}

void BufferMemory::End(int32_t index) {
  Count(index, -1);
  Give(index);
}

void BufferMemory::Count(int32_t index, int64_t sign) {
  const ProgramBuffer& counted = buffer(index);
  const Bytes bytes = sign * counted.bytes;
  live_.total += bytes;
  switch (counted.kind) {
    case BufferKind::kTensor:
      live_.tensors += bytes;
      break;
    case BufferKind::kGradient:
      live_.gradients += bytes;
      break;
    case BufferKind::kWorkspace:
      live_.workspaces += bytes;
      break;
  }
}

// ---- Arena --------------------------------------------------------------------------------------

ArenaMemory::ArenaMemory(Backend& backend, const Program& program, std::vector<Bytes> offsets,
                         bool poisons)
    : BufferMemory(program), backend_(backend), offsets_(std::move(offsets)), poisons_(poisons) {}

ArenaMemory::~ArenaMemory() {
  EndCopies();
  backend_.Release(slab_);
}

Result<std::unique_ptr<ArenaMemory>> ArenaMemory::Create(Backend& backend, const Program& program,
                                                         std::vector<Bytes> offsets,
                                                         Bytes slab_bytes, bool poisons) {
  if (offsets.size() != program.buffers.size()) {
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("the plan places {} buffers, but the step has {}; plan it again",
                                 offsets.size(), program.buffers.size()));
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t offset = offsets[i].count();
    if (!LiesWithin(offsets[i], program.buffers[i].bytes, slab_bytes)) {
      return MakeError(ErrorCode::kCheckFailed,
                       fmt::format("buffer {} lies outside the arena of {} bytes; plan it again", i,
                                   slab_bytes.count()));
    }
    if (program.buffers[i].bytes > Bytes(0) && offset % backend.alignment() != 0) {
      return Error{
          ErrorCode::kCheckFailed,
          fmt::format("buffer {} begins at byte {}, but the {} backend needs multiples of {}", i,
                      offset, backend.name(), backend.alignment()),
          {},
          {"plan with", {{"align", std::to_string(backend.alignment())}}}};
    }
  }
  std::unique_ptr<ArenaMemory> arena(
      new ArenaMemory(backend, program, std::move(offsets), poisons));
  CKPLAN_ASSIGN_OR_RETURN(void* slab, backend.Allocate(slab_bytes.count()));
  arena->slab_ = static_cast<char*>(slab);
  arena->slab_bytes_ = slab_bytes;
  if (poisons) backend.Poison(slab, slab_bytes.count());
  return arena;
}

Result<void*> ArenaMemory::Take(int32_t index) {
  const auto at = static_cast<size_t>(index);
  char* const memory = slab_ + offsets_[at].count();
  used_ = std::max(used_, offsets_[at] + buffer(index).bytes);
  if (poisons_) backend_.Poison(memory, buffer(index).bytes.count());
  return memory;
}

void ArenaMemory::Give(int32_t index) {
  if (!poisons_) return;
  backend_.Poison(slab_ + offsets_[static_cast<size_t>(index)].count(),
                  buffer(index).bytes.count());
}

// ---- Counting -----------------------------------------------------------------------------------

CountingMemory::CountingMemory(Backend& backend, const Program& program, From from)
    : BufferMemory(program),
      backend_(backend),
      from_(from),
      memory_(program.buffers.size(), nullptr) {}

CountingMemory::~CountingMemory() {
  EndCopies();
  for (void* memory : memory_) Release(memory);
}

void CountingMemory::Release(void* memory) {
  from_ == From::kPool ? backend_.ReleasePooled(memory) : backend_.Release(memory);
}

Result<void*> CountingMemory::Take(int32_t index) {
  const int64_t bytes = buffer(index).bytes.count();
  CKPLAN_ASSIGN_OR_RETURN(void* memory, from_ == From::kPool ? backend_.AllocatePooled(bytes)
                                                             : backend_.Allocate(bytes));
  memory_[static_cast<size_t>(index)] = memory;
  return memory;
}

void CountingMemory::Give(int32_t index) {
  Release(std::exchange(memory_[static_cast<size_t>(index)], nullptr));
}

}  // namespace ckplan
