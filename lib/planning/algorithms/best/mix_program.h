// A small linear program: the cheapest mix of known choices under a few limits, by the simplex
// method on a dense table.
//
//   minimise  Σ weight_i · cost_i + wait_0 + wait_1
//   where     Σ weight_i = 1,  Σ weight_i · use_ri <= limit_r + wait of r's group,  all >= 0
//
// It computes in double precision. Nothing is inferred from its answer: prices only say where to
// look for a proof (offload_cut.h), and weights which choices are worth trying.
//
// Cost  about as many pivots as there are limits, or a few times as many, of limits · choices each.
#pragma once

#include <cstddef>
#include <vector>

namespace ckplan {

inline constexpr int kNoWait = -1;

struct MixLimit {
  double limit = 0;
  int wait = kNoWait;       // The group whose wait extends the limit: 0, 1 or none.
  std::vector<double> use;  // By choice.
};

struct Mix {
  double cost = 0;
  std::vector<double> weights;  // By choice.
  std::vector<double> prices;   // By limit: what one more unit of it would save.
  double wait[2] = {0, 0};
};

// `start` is a choice within all limits that no wait extends.
Mix CheapestMix(const std::vector<double>& costs, const std::vector<MixLimit>& limits,
                size_t start);

}  // namespace ckplan
