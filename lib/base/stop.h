// A way to stop any loop without passing it a token. A time limit needs this, since it may pass
// while a file is read, a graph is built or a plan is measured.
//
//   const StopScope scope(token);                        // in the program, around its work
//   for (const NodeId id : graph.ids()) { PollStop(); }  // far below: throws Stopped when asked to
//   return UnlessStopped([&] { return MakePlan(); });    // at the edge: an error kTimeout
//
// Like running out of memory, a stop is an exception, since it can occur in functions that return
// no error. Stopped does not derive from std::exception, so that no handler mistakes it for an
// error of a library.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include "lib/base/result.h"

namespace ckplan {

struct Stopped {};

// Applies to the thread that creates the scope, for as long as the scope lives. Scopes may be
// nested: a stop of any of them stops the thread.
class StopScope {
 public:
  // `on_poll` is called at each poll with the work done since the last one. WorkLimit
  // (work_limit.h) limits work by it, and tests measure how often loops poll.
  explicit StopScope(std::stop_token token, std::function<void(int64_t work)> on_poll = {})
      : token_(std::move(token)),
        on_poll_(std::move(on_poll)),
        outer_(std::exchange(innermost_, this)) {}
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope() { innermost_ = outer_; }

 private:
  friend class StopsSuspended;
  friend void PollStop(int64_t work);

  static inline thread_local const StopScope* innermost_ = nullptr;
  const std::stop_token token_;
  const std::function<void(int64_t work)> on_poll_;
  const StopScope* const outer_;
};

// Suspends all stops while it lives, for output that must be written completely.
class StopsSuspended {
 public:
  StopsSuspended() : outer_(std::exchange(StopScope::innermost_, nullptr)) {}
  StopsSuspended(const StopsSuspended&) = delete;
  StopsSuspended& operator=(const StopsSuspended&) = delete;
  ~StopsSuspended() { StopScope::innermost_ = outer_; }

 private:
  const StopScope* const outer_;
};

// Throws Stopped if any scope around the call was asked to stop. A poll takes a few nanoseconds:
// loops over nodes, tensors or steps poll in each iteration. A loop that polls less often passes
// the number of its iterations since the last poll as `work`.
inline void PollStop(int64_t work = 1) {
  for (const StopScope* scope = StopScope::innermost_; scope != nullptr; scope = scope->outer_) {
    if (scope->on_poll_) scope->on_poll_(work);
    if (scope->token_.stop_requested()) throw Stopped();
  }
}

// Returns the Result of `work`, or kTimeout if `work` is stopped.
template <typename Work>
auto UnlessStopped(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Stopped&) {
    return MakeError(ErrorCode::kTimeout, "stopped");
  }
}

}  // namespace ckplan
