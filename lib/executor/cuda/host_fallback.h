// Operators that the host computes for the GPU, because no kernel of this backend takes them: their
// inputs are copied to the host, its own backend runs them in float32, and the results are copied
// back. docs/executor.md lists them.
//
// A plan's bytes are as they are without the host: the GPU has the operands and no workspace. What
// the host needs is allocated when the operator is prepared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/backend/device_memory.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

class HostFallback {
 public:
  // `host` may be null: programs without the CPU backend have no fallback.
  HostFallback(DeviceMemory& device, std::unique_ptr<Backend> host);
  ~HostFallback();
  HostFallback(const HostFallback&) = delete;
  HostFallback& operator=(const HostFallback&) = delete;

  // `why` says why the GPU does not compute it; see PreparedOp::WhyOnHost. The operator must not
  // outlive this object. kUnsupported: the host does not compute it either. kInfeasible: the host
  // has too little memory.
  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec, std::string why);

 private:
  friend class HostOp;
  Result<Done> Reserve(int64_t bytes);

  DeviceMemory& device_;
  std::unique_ptr<Backend> host_;
  // Memory for the operands of one call, which all operators share.
  void* staging_ = nullptr;
  int64_t staging_bytes_ = 0;
};

}  // namespace ckplan::cuda
