// The link between a device and the memory of its host. Copies over it run beside the device's
// other work, which waits for a copy only at Wait.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/result.h"

namespace ckplan {

struct CopyLinkOptions {
  bool is_half_duplex = false;  // One copy at a time, in either direction.
  // Makes each copy as late as it may be: when something waits for it. Only for links that choose
  // when they copy. A wait that is missing is then seen in what is read.
  bool is_late = false;
};

class CopyLink {
 public:
  CopyLink() = default;
  virtual ~CopyLink() = default;  // Waits for all copies.
  CopyLink(const CopyLink&) = delete;
  CopyLink& operator=(const CopyLink&) = delete;

  // Takes memory of the host that copies can use. kInfeasible: there is too little.
  virtual Result<void*> AllocateHost(int64_t bytes) = 0;
  // Waits for all copies first. `memory` may be null.
  virtual void ReleaseHost(void* memory) = 0;

  // Begin a copy, after all work that the device has been given so far and after all earlier copies
  // the same way. Return a number for Wait. Memory must be left alone until the copy is waited for.
  virtual size_t CopyOut(void* host, const void* device, int64_t bytes) = 0;
  virtual size_t CopyIn(void* device, const void* host, int64_t bytes) = 0;
  // Fills memory of the host with a byte, before any later copy out.
  virtual void FillHost(void* host, int byte, int64_t bytes) = 0;
  // Work that the device is given from now on waits until the copy is complete. Each copy must be
  // waited for once.
  virtual void Wait(size_t copy) = 0;
};

}  // namespace ckplan
