// Finds the best lower bound that cuts over some moments prove, for tests of
// lib/planning/algorithms/best/curve.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/planning/algorithms/best/curve/nested_network.h"
#include "lib/planning/algorithms/best/curve/price_master.h"

namespace ckplan {

// Adds cuts until no prices prove a better bound for this budget. The budget must not be below the
// network's MinBytes at any moment.
inline int64_t BestBoundOf(NestedNetwork* network, int64_t budget) {
  constexpr int kMaxCuts = 64;
  constexpr double kMaxTotalPrice = 1e18;  // More than all costs together.
  constexpr double kMaxPrice = static_cast<double>(int64_t{1} << NestedNetwork::kMaxPriceBits);
  PriceMaster master(network->KeepAll());
  std::vector<int64_t> room;
  for (size_t i = 0; i < network->moment_count(); ++i) {
    room.push_back(budget - network->fixed_bytes(i));
  }
  int64_t bound = 0;
  for (int cut = 0; cut < kMaxCuts; ++cut) {
    master.Solve(room, kMaxTotalPrice);
    if (cut > 0 && master.value() <= static_cast<double>(bound)) break;
    std::vector<int64_t> prices;
    for (const double price : master.prices()) {
      const double whole = std::ldexp(price, network->price_shift());
      prices.push_back(static_cast<int64_t>(std::min(whole, kMaxPrice)));
    }
    bound = std::max(bound, network->Cut(prices, NestedNetwork::Ties::kKeep).CostWithin(budget));
    master.Add(network->Choice());
  }
  return bound;
}

}  // namespace ckplan
