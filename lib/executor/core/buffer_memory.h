// Where a program's buffers live. Two implementations measure the peak independently of the plan:
// an arena with the planned size and offsets, and an allocator that only counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/program.h"

namespace ckplan {

// A program's copies in host memory, and the link that transfers them.
struct HostCopiesOptions {
  CopyLinkOptions link;
  // Fills a copy's place with NaNs when the copy begins.
  bool poisons = false;
};

class HostCopies {
 public:
  // Places the copies in one block of memory. `offsets` has one entry per copy. kCheckFailed: a
  // copy does not lie within `slab_bytes`; the message names the first one.
  static Result<std::unique_ptr<HostCopies>> CreateInSlab(Backend& backend, const Program& program,
                                                          std::vector<Bytes> offsets,
                                                          Bytes slab_bytes,
                                                          const HostCopiesOptions& options);
  // Allocates each copy separately.
  static Result<std::unique_ptr<HostCopies>> CreateSeparate(Backend& backend,
                                                            const Program& program,
                                                            const HostCopiesOptions& options);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Perform the actions of the same names (program.h). `buffer` is the device address.
  Result<Done> Out(int32_t copy, const void* buffer);
  void Drop(int32_t copy);
  void In(int32_t copy, void* buffer);
  void Arrive(int32_t copy);
  void Forget(int32_t copy);

  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }  // The maximum number of live bytes.

 private:
  HostCopies(Backend& backend, const Program& program, const HostCopiesOptions& options);
  const HostCopy& copy(int32_t index) const { return program_.copies[static_cast<size_t>(index)]; }
  Result<char*> Take(int32_t index);

  const Program& program_;
  bool poisons_;
  std::unique_ptr<CopyLink> link_;
  bool is_apart_ = false;
  void* slab_ = nullptr;
  std::vector<Bytes> offsets_;
  std::vector<void*> memory_;      // By copy; null before it begins and after it ends.
  std::vector<size_t> under_way_;  // By copy: the link's number for its last transfer.
  std::vector<void*> forgotten_;   // Separate allocations, released at the end.
  Bytes live_;
  Bytes peak_;
};

// The maximum number of live bytes, its parts by kind of buffer, and the first step that reached
// it.
struct MeasuredPeak {
  Bytes total;
  Bytes tensors;  // Activations and statistics.
  Bytes gradients;
  Bytes workspaces;
  int32_t step = 0;
};

class BufferMemory {
 public:
  explicit BufferMemory(const Program& program) : program_(program) {}
  virtual ~BufferMemory() = default;
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;

  // kInfeasible: the device has too little memory left.
  Result<void*> Begin(int32_t buffer, int32_t step);
  void End(int32_t buffer);

  // Required for programs that copy to the host.
  void UseHost(std::unique_ptr<HostCopies> copies) { host_ = std::move(copies); }
  HostCopies* host() { return host_.get(); }

  const MeasuredPeak& peak() const { return peak_; }
  Bytes host_peak() const { return host_ == nullptr ? Bytes(0) : host_->peak(); }
  Bytes live() const { return live_.total; }

 protected:
  const ProgramBuffer& buffer(int32_t index) const {
    return program_.buffers[static_cast<size_t>(index)];
  }
  // Waits for all copies to and from the host. A failed step may leave some in flight, so call this
  // before releasing memory.
  void EndCopies() { host_.reset(); }
  virtual Result<void*> Take(int32_t buffer) = 0;
  virtual void Give(int32_t buffer) = 0;

 private:
  void Count(int32_t buffer, int64_t sign);

  const Program& program_;
  std::unique_ptr<HostCopies> host_;
  MeasuredPeak live_;
  MeasuredPeak peak_;
};

// One block of memory (the slab) for all buffers. With `poisons`, the whole slab starts filled with
// NaNs, and a buffer's place is refilled whenever the buffer begins or ends.
class ArenaMemory final : public BufferMemory {
 public:
  // `offsets` has one entry per buffer. kCheckFailed: a buffer does not lie within `slab_bytes`, or
  // its offset is not aligned for the backend; the message names the first one.
  static Result<std::unique_ptr<ArenaMemory>> Create(Backend& backend, const Program& program,
                                                     std::vector<Bytes> offsets, Bytes slab_bytes,
                                                     bool poisons);
  ~ArenaMemory() override;

  // Writes the whole slab once, so that no timed run pays for page faults.
  void Touch() { backend_.Zero(slab_, slab_bytes_.count()); }
  // The highest end of any buffer so far.
  Bytes used() const { return used_; }

 private:
  ArenaMemory(Backend& backend, const Program& program, std::vector<Bytes> offsets, bool poisons);
  Result<void*> Take(int32_t buffer) override;
  void Give(int32_t buffer) override;

  Backend& backend_;
  std::vector<Bytes> offsets_;
  bool poisons_;
  char* slab_ = nullptr;
  Bytes slab_bytes_;
  Bytes used_;
};

// Allocates each buffer separately from the driver's pool. If the driver counts bytes in use, its
// count verifies ours.
class CountingMemory final : public BufferMemory {
 public:
  enum class From { kPool, kDevice };  // kDevice: without the pool and the driver's count.
  CountingMemory(Backend& backend, const Program& program, From from = From::kPool);
  ~CountingMemory() override;

 private:
  Result<void*> Take(int32_t buffer) override;
  void Give(int32_t buffer) override;
  void Release(void* memory);

  Backend& backend_;
  From from_;
  std::vector<void*> memory_;
};

}  // namespace ckplan
