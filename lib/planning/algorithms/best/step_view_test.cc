#include "lib/planning/algorithms/best/step_view.h"

#include <doctest/doctest.h>

namespace ckplan {

TEST_CASE("step view: the top is in the highest stretch above the budget that has one") {
  StepView view;
  view.bytes = {5, 11, 12, 9, 15, 20, 14, 10, 13};
  const auto top_of = [&](int64_t budget, const std::function<bool(size_t)>& may_take) {
    return TopAbove(view, budget, may_take);
  };
  const auto all = [](size_t) { return true; };
  CHECK(top_of(10, all) == 5);
  CHECK_FALSE(top_of(20, all).has_value());
  // It takes the next highest step of the same stretch, and no step of another one.
  CHECK(top_of(10, [](size_t step) { return step != 5; }) == 4);
  // A stretch without such a step does not count; the one after it does, up to its last step.
  CHECK(top_of(10, [](size_t step) { return step < 4 || step > 6; }) == 8);
  CHECK(top_of(10, [](size_t step) { return step < 4; }) == 2);
  CHECK_FALSE(
      top_of(10, [](size_t step) { return step == 0 || step == 3 || step == 7; }).has_value());
}

}  // namespace ckplan
