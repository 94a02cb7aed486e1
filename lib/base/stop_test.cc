#include "lib/base/stop.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

// Polls this many times, for one unit of work each. Returns whether a poll asked it to stop.
bool AskedAfter(int polls, const std::stop_token& stop) {
  for (int i = 0; i < polls; ++i) PollStop();
  return stop.stop_requested();
}

TEST_CASE("work limit: searches end after that many polls, and everything a quarter later") {
  for (const int polls : {99, 100, 124}) {
    CAPTURE(polls);
    const bool asked = polls >= 100;
    WorkLimit limit({}, 100);
    const auto run = [&](const std::stop_token& stop) { return AskedAfter(polls, stop); };
    CHECK(limit.Run(run) == asked);
    CHECK(limit.is_spent() == asked);
  }
  WorkLimit limit({}, 100);
  const auto too_long = [](const std::stop_token& stop) { return AskedAfter(125, stop); };
  CHECK(limit.Run(too_long) == std::nullopt);
  CHECK_NOTHROW(PollStop());
}

TEST_CASE("work limit: a poll counts for the work that was done since the last") {
  WorkLimit limit({}, 100);
  const auto run = [](const std::stop_token& stop) {
    PollStop(99);
    CHECK_FALSE(stop.stop_requested());
    CHECK_NOTHROW(PollStop(20));
    CHECK(stop.stop_requested());
    PollStop(20);
    return 0;
  };
  CHECK(limit.Run(run) == std::nullopt);
}

TEST_CASE("work limit: searches share it, and polls between them do not count") {
  WorkLimit limit({}, 100);
  const auto run = [](const std::stop_token& stop) { return AskedAfter(50, stop); };
  CHECK(limit.Run(run) == false);
  for (int i = 0; i < 1000; ++i) CHECK_NOTHROW(PollStop());
  CHECK_FALSE(limit.is_spent());
  CHECK(limit.Run(run) == true);
}

TEST_CASE("work limit: an outer stop ends searches as well, and passes through") {
  std::stop_source outer;
  WorkLimit limit(outer.get_token(), 100);
  const auto run = [&](const std::stop_token& stop) {
    outer.request_stop();
    PollStop();
    return stop.stop_requested();
  };
  CHECK(limit.Run(run) == true);
  CHECK_FALSE(limit.is_spent());
  const StopScope scope(outer.get_token());
  CHECK_THROWS_AS(limit.Run(run), Stopped);
}

}  // namespace
}  // namespace ckplan
