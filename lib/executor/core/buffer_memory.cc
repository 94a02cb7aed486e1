#include "lib/executor/core/buffer_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ckplan {

namespace {

// Does not add, because a sum of numbers from a file may overflow.
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
