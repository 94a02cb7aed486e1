#include "cli/common/interrupt.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

using std::chrono::milliseconds;

// Waits for the stop, for a minute at most.
bool IsStopped(const std::stop_token& token) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, token, std::chrono::minutes(1), [] { return false; });
  return token.stop_requested();
}

TEST_CASE("interrupt: the first signal requests a stop") {
  const Interrupt interrupt(std::nullopt);
  CHECK(!interrupt.token().stop_requested());
  raise(SIGINT);
  CHECK(IsStopped(interrupt.token()));
  CHECK(interrupt.was_interrupted());
}

TEST_CASE("interrupt: the time limit requests a stop") {
  const Interrupt interrupt(milliseconds(1));
  CHECK(IsStopped(interrupt.token()));
  CHECK(!interrupt.was_interrupted());
}

TEST_CASE("interrupt: a limit of zero passes at once") {
  const Interrupt interrupt(milliseconds(0));
  CHECK(interrupt.token().stop_requested());
}

TEST_CASE(
    "interrupt: soon after the searches, all work stops in the thread that owns the Interrupt") {
  const auto poll_for_ever = [] {
    for (;;) PollStop();
  };
  const auto start = std::chrono::steady_clock::now();
  const Interrupt interrupt(milliseconds(0));
  CHECK_THROWS_AS(poll_for_ever(), Stopped);
  CHECK(std::chrono::steady_clock::now() - start >= milliseconds(100));
  std::thread([] { CHECK_NOTHROW(PollStop()); }).join();
}

TEST_CASE("interrupt: one Interrupt may follow another") {
  for (int i = 0; i < 3; ++i) {
    const Interrupt interrupt(std::nullopt);
    CHECK(!interrupt.token().stop_requested());
  }
}

std::atomic<bool> stuck_call_may_return = false;
StuckCall stuck_call;

TEST_CASE(
    "interrupt: a call that does not poll is reported after all stops, and one that does is not") {
  SetEndOfStuckCalls([](const StuckCall& call) {
    stuck_call = call;
    stuck_call_may_return = true;
  });
  const std::string what = "a call";
  {
    const Interrupt interrupt(milliseconds(1));
    const UnpolledCall call(what);
    while (!stuck_call_may_return) std::this_thread::yield();
  }
  CHECK(stuck_call.what == "a call");
  CHECK(!stuck_call.was_interrupted);
  CHECK(stuck_call.time_limit == milliseconds(1));
  stuck_call = {};
  {
    const Interrupt interrupt(milliseconds(1));
    const auto call_for_ever = [&what] {
      for (;; PollStop()) const UnpolledCall call(what);
    };
    CHECK_THROWS_AS(call_for_ever(), Stopped);
  }
  CHECK(stuck_call.what.empty());
  SetEndOfStuckCalls(nullptr);
}

}  // namespace
}  // namespace ckplan
