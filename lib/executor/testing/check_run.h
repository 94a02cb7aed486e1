// Runs one operator on one backend and watches its memory: every buffer lies between guard bytes,
// and memory that the operator must write starts poisoned.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

// Gives memory that was released to the next that asks for as many bytes, so that tests with many
// small buffers do not wait for the device at each of them.
class ReusingBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  ~ReusingBackend() override;
  Result<void*> Allocate(int64_t bytes) override;
  void Release(void* memory) override;

 private:
  std::map<int64_t, std::vector<void*>> free_;  // By size.
  std::map<void*, int64_t> sizes_;
};

// Device memory between guard bytes. It has exactly the alignment of the arena, and no more.
class WatchedBuffer {
 public:
  // Fills the buffer with poison.
  WatchedBuffer(Backend& backend, int64_t bytes);
  WatchedBuffer(Backend& backend, const Tensor& contents);
  ~WatchedBuffer();
  WatchedBuffer(const WatchedBuffer&) = delete;
  WatchedBuffer& operator=(const WatchedBuffer&) = delete;

  void* at() const;  // Not null, even if the buffer is empty.
  std::vector<unsigned char> Read() const;
  bool AreGuardsIntact() const;

 private:
  Backend& backend_;
  int64_t bytes_;
  int64_t guard_;
  void* base_;
};

std::vector<unsigned char> ToBytes(const Tensor& tensor);
// Decodes bytes of the operand's type and dimensions.
Tensor FromBytes(const std::vector<unsigned char>& bytes, const Operand& operand);

// Returns the index of the first element that still holds poison, or -1.
int64_t FirstPoisoned(const std::vector<unsigned char>& bytes, ElementType type);

using Blob = std::vector<unsigned char>;

struct ForwardResult {
  std::vector<Blob> outputs;  // Empty for absent outputs.
  Blob statistic;
  std::vector<std::string> faults;  // Broken guards, changed inputs, unwritten bytes.
};

struct BackwardResult {
  std::vector<Blob> gradients;  // By input position; empty unless requested.
  std::vector<std::string> faults;
};

// `left_out` is the position of an output that is never read, or -1. `in_place` is the position of
// the input whose memory output 0 uses, or -1.
ForwardResult RunForward(Backend& backend, PreparedOp& op, const OpSpec& spec,
                         const std::vector<Tensor>& inputs, uint64_t seed, int64_t left_out = -1,
                         int64_t in_place = -1);

BackwardResult RunBackward(Backend& backend, PreparedOp& op, const OpSpec& spec,
                           const std::vector<Tensor>& inputs, const ForwardResult& forward,
                           const std::vector<Tensor>& output_gradients, uint64_t seed);

}  // namespace ckplan::reference
