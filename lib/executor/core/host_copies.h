// The copies of a program in the memory of the host, and the link over which they are made.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/program.h"

namespace ckplan {

struct HostCopiesOptions {
  CopyLinkOptions link;
  // Fills the place of a copy with NaNs when it begins.
  bool poisons = false;
};

class HostCopies {
 public:
  // Places the copies in one block of memory. `offsets` has one entry for each copy of the program.
  // kCheckFailed names the first copy that does not lie within `slab_bytes`.
  static Result<std::unique_ptr<HostCopies>> InSlab(Backend& backend, const Program& program,
                                                    std::vector<Bytes> offsets, Bytes slab_bytes,
                                                    const HostCopiesOptions& options);
  // Allocates each copy separately.
  static Result<std::unique_ptr<HostCopies>> Apart(Backend& backend, const Program& program,
                                                   const HostCopiesOptions& options);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Do what the actions of these names say (program.h). `buffer` is the address on the device.
  Result<Done> Out(int32_t copy, const void* buffer);
  void Drop(int32_t copy);
  void In(int32_t copy, void* buffer);
  void Arrive(int32_t copy);
  void Forget(int32_t copy);

  Bytes live() const { return live_; }
  Bytes peak() const { return peak_; }  // The most that was live at once.

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
  std::vector<size_t> under_way_;  // By copy: the link's number of its last transfer.
  std::vector<void*> forgotten_;   // Separate memory that is released at the end.
  Bytes live_;
  Bytes peak_;
};

}  // namespace ckplan
