#include "lib/base/stop.h"

#include <mutex>

namespace ckplan {

namespace {

// Only one call runs at a time, since models are loaded by one thread.
struct RunningCall {
  std::mutex mutex;
  uint64_t latest = 0;
  const std::string* what = nullptr;
};

RunningCall& TheCall() {
  static RunningCall call;
  return call;
}

}  // namespace

UnpolledCall::UnpolledCall(const std::string& what) {
  RunningCall& call = TheCall();
  const std::lock_guard lock(call.mutex);
  ++call.latest;
  call.what = &what;
}

UnpolledCall::~UnpolledCall() {
  RunningCall& call = TheCall();
  const std::lock_guard lock(call.mutex);
  call.what = nullptr;
}

uint64_t UnpolledCall::Running() {
  RunningCall& call = TheCall();
  const std::lock_guard lock(call.mutex);
  return call.what == nullptr ? 0 : call.latest;
}

void UnpolledCall::IfRunning(uint64_t number,
                             const std::function<void(const std::string& what)>& use) {
  RunningCall& call = TheCall();
  const std::lock_guard lock(call.mutex);
  if (call.what != nullptr && call.latest == number) use(*call.what);
}

}  // namespace ckplan
