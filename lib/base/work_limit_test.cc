#include "lib/base/work_limit.h"

#include <doctest/doctest.h>

namespace ckplan {

TEST_CASE("work limit: searches end after that many polls, and everything a quarter later") {
  const WorkLimit limit({}, 100);
  for (int i = 0; i < 99; ++i) PollStop();
  CHECK_FALSE(limit.token().stop_requested());
  PollStop();
  CHECK(limit.token().stop_requested());
  for (int i = 100; i < 124; ++i) CHECK_NOTHROW(PollStop());
  CHECK_THROWS_AS(PollStop(), Stopped);
}

TEST_CASE("work limit: a poll counts for the work that was done since the last") {
  const WorkLimit limit({}, 100);
  PollStop(99);
  CHECK_FALSE(limit.token().stop_requested());
  CHECK_NOTHROW(PollStop(20));
  CHECK(limit.token().stop_requested());
  CHECK_THROWS_AS(PollStop(20), Stopped);
}

TEST_CASE("work limit: an outer stop ends searches as well") {
  std::stop_source outer;
  const WorkLimit limit(outer.get_token(), 100);
  CHECK_FALSE(limit.token().stop_requested());
  outer.request_stop();
  CHECK(limit.token().stop_requested());
  CHECK_NOTHROW(PollStop());
}

TEST_CASE("work limit: polls outside do not count") {
  { const WorkLimit limit({}, 1); }
  for (int i = 0; i < 9; ++i) CHECK_NOTHROW(PollStop());
}

}  // namespace ckplan
