// Stops any loop without passing a token to it. A time limit needs this, since it may expire while
// ckplan reads a file, builds a graph or measures a plan.
//
//   const StopScope scope(token);                        // in the program, around its work
//   for (const NodeId id : graph.ids()) { PollStop(); }  // deep inside: throws Stopped
//   return CatchStop([&] { return MakePlan(); });    // at the top: turns it into kTimeout
//
// A stop is an exception, like running out of memory, since it can occur in functions that return
// no error. Stopped does not derive from std::exception, so that handlers for a library's errors
// do not catch it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "lib/base/result.h"

namespace ckplan {

struct Stopped {};

// Lets `token` stop the thread that created the scope, while the scope lives. Scopes nest: a stop
// of any of them stops the thread.
class StopScope {
 public:
  // `on_poll` is called at each poll with the work done since the last one. WorkLimit counts work
  // with it, and tests measure how often loops poll.
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

// Suspends stops while it lives, for output that must be written completely.
class StopsSuspended {
 public:
  StopsSuspended() : outer_(std::exchange(StopScope::innermost_, nullptr)) {}
  StopsSuspended(const StopsSuspended&) = delete;
  StopsSuspended& operator=(const StopsSuspended&) = delete;
  ~StopsSuspended() { StopScope::innermost_ = outer_; }

 private:
  const StopScope* const outer_;
};

// Throws Stopped if an enclosing scope was asked to stop. A poll takes a few nanoseconds, so loops
// over nodes, tensors or steps poll in each iteration. A loop that polls less often passes the
// number of iterations since its last poll as `work`.
inline void PollStop(int64_t work = 1) {
  for (const StopScope* scope = StopScope::innermost_; scope != nullptr; scope = scope->outer_) {
    if (scope->on_poll_) scope->on_poll_(work);
    if (scope->token_.stop_requested()) throw Stopped();
  }
}

// Returns the Result of `work`, or kTimeout if `work` is stopped.
template <typename Work>
auto CatchStop(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Stopped&) {
    return MakeError(ErrorCode::kTimeout, "stopped");
  }
}

// Marks a call into a library that cannot poll for stops, such as ONNX's shape inference. If such a
// call does not return after a stop, cli/common/interrupt.h ends the process.
class UnpolledCall {
 public:
  // `what` names the call in messages and must outlive it: "node "e" (Einsum)".
  explicit UnpolledCall(const std::string& what);
  UnpolledCall(const UnpolledCall&) = delete;
  UnpolledCall& operator=(const UnpolledCall&) = delete;
  ~UnpolledCall();

  // Returns the number of the running call, or 0. Numbers are not reused.
  static uint64_t Running();
  // Calls `use` with the name of this call if it still runs; the call cannot end before `use`
  // returns.
  static void IfRunning(uint64_t call, const std::function<void(const std::string& what)>& use);
};

// Limits counted work instead of time, so that results do not depend on the machine. Once the polls
// add up to the limit, the search is asked to stop, as by a time limit; if it does not return, an
// exception ends it a little later.
//
//   WorkLimit limit(outer_token, 1'000'000);
//   const auto found = limit.Run([&](std::stop_token stop) { return Search(stop); });
//   if (!found) ...  // the limit ended the search before it had a result
//
// The limit applies only inside Run, and its stop never leaves Run, so that callers cannot mistake
// spent work for a time limit or Ctrl-C. Only polls of the thread that calls Run count. Several
// searches may share a limit.
class WorkLimit {
 public:
  WorkLimit(std::stop_token outer, int64_t work)
      : work_(work), outer_(std::move(outer), [this] { searches_.request_stop(); }) {}
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  // Returns the result of `search`, or nothing if the limit ended it. Throws Stopped if an
  // enclosing scope is stopped.
  template <typename Search>
  auto Run(const Search& search) -> std::optional<decltype(search(std::stop_token()))> {
    try {
      const StopScope scope(everything_.get_token(), [this](int64_t done) { Count(done); });
      return search(searches_.get_token());
    } catch (const Stopped&) {
      PollStop(0);
      return std::nullopt;
    }
  }

  // Returns true if the work reached the limit; false after a stop from outside.
  bool is_spent() const { return counted_ >= work_; }

 private:
  void Count(int64_t done) {
    counted_ += done;
    if (is_spent()) searches_.request_stop();
    if (counted_ >= work_ + work_ / kGrace) everything_.request_stop();
  }

  // A search that has no plan yet may do a quarter more work to complete one.
  static constexpr int64_t kGrace = 4;

  const int64_t work_;
  int64_t counted_ = 0;
  std::stop_source searches_;
  std::stop_source everything_;
  const std::stop_callback<std::function<void()>> outer_;
};

}  // namespace ckplan
