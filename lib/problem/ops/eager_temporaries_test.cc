#include "lib/problem/ops/eager_temporaries.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ckplan {
namespace {

struct TemporariesRow {
  std::string type;
  std::vector<int64_t> a, b;
  bool wants_a, wants_b;
  int64_t tensors;  // In tensors of the result's size.
};

TEST_CASE("eager temporaries: gradients that PyTorch composes have the tensors of their formula") {
  const std::vector<int64_t> whole = {4, 8};
  const std::vector<int64_t> row = {8};
  const std::vector<TemporariesRow> rows = {
      {"Pow", whole, {}, true, false, 2},   {"Pow", whole, {}, false, false, 0},
      {"Div", whole, whole, true, true, 2}, {"Div", whole, row, true, false, 0},
      {"Mul", whole, whole, true, true, 0}, {"Mul", whole, row, true, true, 1},
      {"Mul", whole, row, true, false, 0},  {"Mul", row, whole, true, false, 1},
      {"PRelu", whole, row, true, true, 1}, {"PRelu", whole, row, true, false, 0},
      {"Add", whole, row, true, true, 0},   {"Sigmoid", whole, {}, true, false, 0},
      {"Abs", whole, {}, true, false, 1},   {"CumSum", whole, {}, true, false, 2},
      {"Erf", whole, {}, true, false, 4},
  };
  for (const TemporariesRow& one : rows) {
    CAPTURE(one.type);
    OpSpec spec;
    spec.type = one.type;
    const auto operand = [](const std::vector<int64_t>& dims, bool has_gradient) {
      Operand made;
      made.is_present = true;
      made.dims = dims;
      made.has_gradient = has_gradient;
      return made;
    };
    spec.inputs = {operand(one.a, one.wants_a), operand(one.b, one.wants_b)};
    spec.outputs = {operand(whole, true)};
    CHECK(EagerTemporaries(spec) == Bytes(one.tensors * 4 * 32));
  }
}

}  // namespace
}  // namespace ckplan
