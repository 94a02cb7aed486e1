#include "cli/common/interrupt.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>

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

}  // namespace
}  // namespace ckplan
