#include "cli/common/interrupt.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>

namespace ckplan {
namespace {

using std::chrono::milliseconds;

// Waits for the stop, a minute at most.
bool IsStopped(const std::stop_token& token) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, token, std::chrono::minutes(1), [] { return false; });
  return token.stop_requested();
}

TEST_CASE("interrupt: the first signal asks for a stop") {
  const Interrupt interrupt(std::nullopt);
  CHECK(!interrupt.token().stop_requested());
  raise(SIGINT);
  CHECK(IsStopped(interrupt.token()));
  CHECK(interrupt.was_interrupted());
}

TEST_CASE("interrupt: the time limit asks for a stop") {
  const Interrupt interrupt(milliseconds(1));
  CHECK(IsStopped(interrupt.token()));
  CHECK(!interrupt.was_interrupted());
}

TEST_CASE("interrupt: a limit of nothing has passed at once") {
  const Interrupt interrupt(milliseconds(0));
  CHECK(interrupt.token().stop_requested());
}

TEST_CASE("interrupt: soon after the searches everything stops, in the thread that waits for it") {
  const auto poll_for_ever = [] {
    for (;;) PollStop();
  };
  const auto start = std::chrono::steady_clock::now();
  const Interrupt interrupt(milliseconds(0));
  CHECK_THROWS_AS(poll_for_ever(), Stopped);
  CHECK(std::chrono::steady_clock::now() - start >= milliseconds(100));
  std::thread([] { CHECK_NOTHROW(PollStop()); }).join();
}

TEST_CASE("interrupt: one after another may live") {
  for (int i = 0; i < 3; ++i) {
    const Interrupt interrupt(std::nullopt);
    CHECK(!interrupt.token().stop_requested());
  }
}

}  // namespace
}  // namespace ckplan
