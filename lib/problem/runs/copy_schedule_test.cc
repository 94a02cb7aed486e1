#include "lib/problem/runs/copy_schedule.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {
namespace {

// Copies take one unit of time per byte.
Link SlowLink() {
  Link link;
  link.out_bytes_per_second = link.in_bytes_per_second = 1'000'000'000;
  return link;
}

std::string TextOf(const CopyPlan& plan) {
  std::string text;
  for (const CopyStep& step : plan.steps) {
    const char* const words[] = {"out", "drop", "in"};
    text += std::string(words[static_cast<size_t>(step.kind)]) + " " + std::to_string(step.value) +
            " before " + std::to_string(step.before_run) + "; ";
  }
  return text;
}

// A value of 4 bytes that run 0 writes, run 1 reads, and run 4 reads after a copy back.
Absence FourBytes() { return {7, 4, 0, 1, 4, 1, 4}; }

}  // namespace

TEST_CASE("copies: begin as soon as the value is made, and end just in time") {
  const CopyTask task = {{2, 2, 2, 4, 1}, {4, 4, 0, 0, 4}, {FourBytes()}};
  CopyScheduler scheduler(SlowLink());
  const CopyPlan& plan = scheduler.Run(task, 10);
  CHECK(plan.fits);
  // The copy out takes from 2 to 6, and the copy back from 6 to 10, when run 4 begins.
  CHECK(TextOf(plan) == "out 7 before 1; drop 7 before 3; in 7 before 3; ");
  CHECK(plan.end == 11);
  CHECK(plan.host_peak == 4);
}

TEST_CASE("copies: a run waits for memory until a copy out is complete") {
  const CopyTask task = {{2, 2, 2, 4, 1}, {4, 4, 8, 0, 4}, {FourBytes()}};
  CopyScheduler scheduler(SlowLink());
  // Run 2 starts at 6 instead of 4, because both values together need 12 bytes.
  CHECK(scheduler.Run(task, 11).end == 13);
  CHECK(TextOf(scheduler.Run(task, 11)) == "out 7 before 1; drop 7 before 2; in 7 before 3; ");
  CHECK(scheduler.Run(task, 12).end == 11);
  CHECK_FALSE(scheduler.Run(task, 7).fits);
}

TEST_CASE("copies: one begins late if there is no room for the value before its read") {
  const CopyTask task = {{2, 2, 2, 4, 1}, {4, 4, 0, 8, 4}, {FourBytes()}};
  CopyScheduler scheduler(SlowLink());
  CHECK(scheduler.Run(task, 12).end == 11);
  // The copy back takes from 10 to 14.
  CHECK(scheduler.Run(task, 11).end == 15);
  CHECK(TextOf(scheduler.Run(task, 11)) == "out 7 before 1; drop 7 before 3; in 7 before 4; ");
}

TEST_CASE(
    "copies: a plan that would end too late is given up, at a time that is not above its own") {
  const CopyTask task = {{2, 2, 2, 4, 1}, {4, 4, 8, 0, 4}, {FourBytes()}};
  CopyScheduler scheduler(SlowLink());
  CHECK(scheduler.Run(task, 11, /*latest_end=*/13).runs == 5);
  CHECK(scheduler.Run(task, 11, /*latest_end=*/13).end == 13);
  // Run 2 waits until 6, so the end is at 13 at the earliest.
  CHECK(scheduler.Run(task, 11, /*latest_end=*/12).runs == 3);
  CHECK(scheduler.Run(task, 11, /*latest_end=*/12).end == 13);
}

TEST_CASE(
    "copies: of several values that wait for the link, those read last first are dropped first") {
  // The copies take from 1 to 5, from 5 to 9 and from 9 to 13. Run 3 needs the memory of two
  // values.
  const Absence first = {1, 4, 0, 0, 5, 0, 5};
  const Absence second = {2, 4, 0, 1, 6, 1, 6};
  const Absence third = {3, 4, 0, 2, 4, 2, 4};
  const CopyTask task = {{1, 1, 1, 1, 20, 20, 20}, {12, 8, 4, 8, 4, 4, 4}, {third, first, second}};
  CopyScheduler scheduler(SlowLink());
  CHECK(TextOf(scheduler.Run(task, 12)) ==
        "out 1 before 1; drop 1 before 3; out 2 before 3; drop 2 before 3; out 3 before 3; "
        "drop 3 before 4; in 3 before 4; in 1 before 4; in 2 before 5; ");
  CHECK(scheduler.Run(task, 12).end == 77);
}

TEST_CASE("copies: of two values, the one whose last read comes first goes first") {
  const Absence later = {1, 4, 0, 2, 4, 2, 4};
  const Absence sooner = {2, 4, 0, 1, 5, 1, 5};
  const CopyTask task = {{1, 1, 1, 20, 1, 1}, {8, 8, 4, 0, 4, 4}, {later, sooner}};
  CopyScheduler scheduler(SlowLink());
  CHECK(TextOf(scheduler.Run(task, 20)) ==
        "out 2 before 1; out 1 before 3; drop 1 before 4; drop 2 before 4; in 1 before 4; "
        "in 2 before 5; ");
}

TEST_CASE("copies: over one link for both ways, copies back wait for copies out") {
  const Absence first = {1, 4, 0, 0, 3, 0, 3};
  const Absence second = {2, 4, 2, 2, 4, 2, 4};
  const CopyTask task = {{4, 4, 1, 1, 1}, {4, 0, 4, 4, 4}, {first, second}};
  Link link = SlowLink();
  // The first copy back takes from 8 to 12. The second copy out begins at 9, or at 12.
  CHECK(CopyScheduler(link).Run(task, 20).end == 18);
  link.duplex = Duplex::kHalf;
  CHECK(CopyScheduler(link).Run(task, 20).end == 21);
}

TEST_CASE("copies: a lead begins copies back earlier") {
  const CopyTask task = {{2, 2, 2, 2, 4, 4, 1}, {4, 4, 0, 0, 0, 0, 4}, {{7, 4, 0, 1, 6, 1, 6}}};
  CHECK(TextOf(CopyScheduler(SlowLink()).Run(task, 10)) ==
        "out 7 before 1; drop 7 before 3; in 7 before 5; ");
  CHECK(TextOf(CopyScheduler(SlowLink(), 200).Run(task, 10)) ==
        "out 7 before 1; drop 7 before 3; in 7 before 4; ");
}

}  // namespace ckplan
