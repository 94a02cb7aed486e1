// Elementwise functions of two inputs, folded over any number of them.
#pragma once

#include <cmath>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

// F is double(const OpSpec&, double a, double b); it is applied from left to right.

template <auto F>
void Fold(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    double value = inputs[0][Offset(inputs[0], index)];
    for (size_t k = 1; k < inputs.size(); ++k) {
      value = F(spec, value, inputs[k][Offset(inputs[k], index)]);
    }
    outputs[0][i] = value;
  });
}

#define CKPLAN_FOLD(expression) \
  Fold<[](const OpSpec&, double a, double b) -> double { return (expression); }>

}  // namespace ckplan::reference
