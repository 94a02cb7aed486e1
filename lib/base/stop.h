// A stop that any loop can heed without being handed it, as a time limit needs: it may pass while a
// file is read, a graph is built or a plan is measured.
//
//   const StopScope scope(token);                        // in the program, around its work
//   for (const NodeId id : graph.ids()) { PollStop(); }  // far below: throws Stopped when asked to
//   return UnlessStopped([&] { return MakePlan(); });    // at the edge: an error kTimeout
//
// Like memory that runs out, a stop leaves by an exception, since it can come in functions that
// return no error. It is no std::exception, so that nobody takes it for a fault of a library.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include "lib/base/result.h"

namespace ckplan {

struct Stopped {};

// Holds for the thread that makes it, as long as it lives. Scopes may be nested: any of them stops.
class StopScope {
 public:
  // `on_poll` is called at each poll with the work that was done since the last: by it work is
  // limited (work_limit.h), and a test measures how often loops ask.
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

// While it lives, nothing stops: for what is to be told whole.
class StopsSuspended {
 public:
  StopsSuspended() : outer_(std::exchange(StopScope::innermost_, nullptr)) {}
  StopsSuspended(const StopsSuspended&) = delete;
  StopsSuspended& operator=(const StopsSuspended&) = delete;
  ~StopsSuspended() { StopScope::innermost_ = outer_; }

 private:
  const StopScope* const outer_;
};

// Throws Stopped if a scope around it is asked to stop. A few nanoseconds: loops over nodes,
// tensors or steps call it each time. `work` is for those who can ask but now and then: how many
// such steps they have made since.
inline void PollStop(int64_t work = 1) {
  for (const StopScope* scope = StopScope::innermost_; scope != nullptr; scope = scope->outer_) {
    if (scope->on_poll_) scope->on_poll_(work);
    if (scope->token_.stop_requested()) throw Stopped();
  }
}

// What `work` returns, which is a Result; kTimeout if it is stopped.
template <typename Work>
auto UnlessStopped(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Stopped&) {
    return MakeError(ErrorCode::kTimeout, "stopped");
  }
}

}  // namespace ckplan
