// Steps that several normalisations share.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

struct Moments {
  double mean = 0, variance = 0;
};

// Returns the moments of each group; elements for which `group_of` returns the same number form a
// group.
inline std::map<int64_t, Moments> MomentsBy(const Tensor& x,
                                            const std::function<int64_t(const Index&)>& group_of) {
  std::map<int64_t, std::vector<double>> groups;
  ForEach(x.dims, [&](const Index& index, int64_t i) { groups[group_of(index)].push_back(x[i]); });
  std::map<int64_t, Moments> moments;
  for (const auto& [group, values] : groups) {
    Moments& of = moments[group];
    const auto count = static_cast<double>(values.size());
    for (const double value : values) of.mean += value / count;
    for (const double value : values) of.variance += (value - of.mean) * (value - of.mean) / count;
  }
  return moments;
}

inline double Epsilon(const OpSpec& spec) {
  return static_cast<double>(static_cast<float>(spec.Float("epsilon", 1e-5)));
}

}  // namespace ckplan::reference
