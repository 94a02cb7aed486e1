// Marks a call into a library that cannot poll for stops, such as ONNX's shape inference. If a stop
// (stop.h) finds the program stuck in such a call, nothing but the end of the process helps:
// cli/common/interrupt.h ends it then.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ckplan {

class UnpolledCall {
 public:
  // `what` names the call in messages and must outlive it: "node "e" (Einsum)".
  explicit UnpolledCall(const std::string& what);
  UnpolledCall(const UnpolledCall&) = delete;
  UnpolledCall& operator=(const UnpolledCall&) = delete;
  ~UnpolledCall();

  // Returns the number of the running call; 0 if none runs. Numbers are never used again.
  static uint64_t Running();
  // Calls `use` with the name of this call if it still runs, and keeps it from returning meanwhile.
  static void IfRunning(uint64_t call, const std::function<void(const std::string& what)>& use);
};

}  // namespace ckplan
