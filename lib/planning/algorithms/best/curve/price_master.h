// Chooses the price of a byte at each moment for one budget, so that the best mix of the choices
// known so far is as expensive as possible.
//
//   least    sum of cost(c) * share(c)
//   where    sum of share(c) = 1, and the shares' bytes fit in the room at each moment
//
// This is the master program of Dantzig and Wolfe ("Decomposition principle for linear programs",
// Operations Research 8, 1960). Its dual values are the prices; a cut at these prices
// (nested_network.h) is a new choice, or proves that none exists.
//
// Numbers are doubles: prices need not be exact, because a cut at any prices proves a bound.
//
// Cost  a dense simplex with one row per moment and one more, about ten pivots per choice added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/curve/nested_network.h"

namespace ckplan {

class PriceMaster {
 public:
  // `first` is a choice without cost, such as keep-all.
  explicit PriceMaster(const NestedChoice& first) : choices_({first}) {}

  void Add(NestedChoice choice) { choices_.push_back(std::move(choice)); }

  // Solves for this room at each moment. A choice may exceed it by a thousandth of the largest room
  // at the cost of `dearest`, so a solution always exists.
  void Solve(std::span<const int64_t> room, double dearest);

  // The price per byte of each moment.
  const std::vector<double>& prices() const { return prices_; }
  double value() const { return value_; }  // The cost of the best mix.
  int64_t pivots() const { return pivots_; }

 private:
  std::vector<NestedChoice> choices_;
  std::vector<double> prices_;
  double value_ = 0;
  int64_t pivots_ = 0;
};

}  // namespace ckplan
