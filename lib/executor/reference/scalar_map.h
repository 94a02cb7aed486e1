// Elementwise functions of one input.
#pragma once

#include <cmath>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

// F is double(const OpSpec&, double x).

template <auto F>
void Map(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (int64_t i = 0; i < outputs[0].size(); ++i) outputs[0][i] = F(spec, inputs[0][i]);
}

#define CKPLAN_MAP(expression) Map<[](const OpSpec&, double x) -> double { return (expression); }>

}  // namespace ckplan::reference
