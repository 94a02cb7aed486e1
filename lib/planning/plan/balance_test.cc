#include "lib/planning/plan/balance.h"

#include <doctest/doctest.h>

#include <vector>

namespace ckplan {
namespace {

// Points of a curve, by rising peak.
const std::vector<CurvePoint> kFront = {
    {Bytes(40), Cost(90)}, {Bytes(60), Cost(30)}, {Bytes(80), Cost(10)}, {Bytes(100), Cost(0)}};

}  // namespace

TEST_CASE("balance: the least product of memory and time of a whole step is preferred") {
  // 40 x 190, 60 x 130, 80 x 110 and 100 x 100.
  const Balance balance{Cost(100), Bytes(0)};
  CHECK(balance.BestOf(kFront) == kFront[0]);
  CHECK(balance.IsBetter(kFront[0], kFront[1]));
  CHECK_FALSE(balance.IsBetter(kFront[1], kFront[0]));
}

TEST_CASE("balance: constants make time count for more, and a short step for less") {
  // With 100 bytes more, 140 x 190, 160 x 130, 180 x 110 and 200 x 100.
  CHECK(Balance{Cost(100), Bytes(100)}.BestOf(kFront) == kFront[2]);
  CHECK(Balance{Cost(100), Bytes(1000)}.BestOf(kFront) == kFront[3]);
  // 40 x 91 against 60 x 31.
  CHECK(Balance{Cost(1), Bytes(0)}.BestOf(kFront) == kFront[3]);
  CHECK(Balance{Cost(10), Bytes(0)}.BestOf(kFront) == kFront[3]);
  CHECK(Balance{Cost(1000), Bytes(0)}.BestOf(kFront) == kFront[0]);
}

TEST_CASE("balance: of equal products the lower peak is better, and no product overflows") {
  const Balance balance{Cost(100), Bytes(0)};
  const CurvePoint less{Bytes(50), Cost(100)};
  const CurvePoint more{Bytes(100), Cost(0)};
  CHECK(balance.IsBetter(less, more));
  CHECK_FALSE(balance.IsBetter(more, less));
  CHECK_FALSE(balance.IsBetter(less, less));
  // Without any time, every product is 0.
  CHECK(Balance{Cost(0), Bytes(0)}.IsBetter({Bytes(1), Cost(0)}, {Bytes(2), Cost(0)}));
  constexpr int64_t kLarge = int64_t{1} << 60;
  const Balance large{Cost(int64_t{1} << 52), Bytes(kLarge)};
  CHECK(large.IsBetter({Bytes(kLarge - 1), Cost(0)}, {Bytes(kLarge), Cost(0)}));
  CHECK_FALSE(large.IsBetter({Bytes(kLarge), Cost(1)}, {Bytes(kLarge), Cost(0)}));
}

TEST_CASE("balance: the gaps beside the best point are halved, at an end there is one") {
  using Budgets = std::vector<Bytes>;
  const Balance balance{Cost(100), Bytes(100)};
  CHECK(balance.BudgetsBesideBest(kFront) == Budgets{Bytes(70), Bytes(90)});
  CHECK(Balance{Cost(100), Bytes(0)}.BudgetsBesideBest(kFront) == Budgets{Bytes(50)});
  CHECK(Balance{Cost(1), Bytes(0)}.BudgetsBesideBest(kFront) == Budgets{Bytes(90)});
  const std::vector<CurvePoint> one = {{Bytes(7), Cost(0)}};
  CHECK(balance.BudgetsBesideBest(one).empty());
}

}  // namespace ckplan
