// Where the buffers of a program live. Two ways, so that the peak is measured independently of the
// plan: an arena of the planned size and offsets, and an allocator that only counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/program.h"

namespace ckplan {

// The most bytes that were live at once, told apart, and when that was first so.
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

  // kInfeasible: the device has no more.
  Result<void*> Begin(int32_t buffer, int32_t step);
  void End(int32_t buffer);

  const MeasuredPeak& peak() const { return peak_; }
  Bytes live() const { return live_.total; }

 protected:
  const ProgramBuffer& buffer(int32_t index) const {
    return program_.buffers[static_cast<size_t>(index)];
  }
  virtual Result<void*> Take(int32_t buffer) = 0;
  virtual void Give(int32_t buffer) = 0;

 private:
  void Count(int32_t buffer, int64_t sign);

  const Program& program_;
  MeasuredPeak live_;
  MeasuredPeak peak_;
};

// One slab. With `poisons`, it is filled with NaNs at first and wherever a buffer begins or ends.
class ArenaMemory final : public BufferMemory {
 public:
  // `offsets` parallel to the program's buffers, all of them within `slab_bytes`: kCheckFailed
  // names the first that is not, or that the backend cannot use for want of alignment.
  static Result<std::unique_ptr<ArenaMemory>> Create(Backend& backend, const Program& program,
                                                     std::vector<Bytes> offsets, Bytes slab_bytes,
                                                     bool poisons);
  ~ArenaMemory() override;

  // Writes all of the slab once, so that no page of it is new to a timed run.
  void Touch() { backend_.Zero(slab_, slab_bytes_.count()); }
  // The highest end of a buffer that was used.
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

// Each buffer by itself from the pool of the device's driver, which counts too where it can.
class CountingMemory final : public BufferMemory {
 public:
  CountingMemory(Backend& backend, const Program& program);
  ~CountingMemory() override;

 private:
  Result<void*> Take(int32_t buffer) override;
  void Give(int32_t buffer) override;

  Backend& backend_;
  std::vector<void*> memory_;
};

}  // namespace ckplan
