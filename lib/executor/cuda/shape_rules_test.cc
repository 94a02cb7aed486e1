#include "lib/executor/cuda/shape_rules.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace ckplan::cuda {
namespace {

using Dims = std::vector<int64_t>;

Operand Tensor(Dims dims, ElementType type = ElementType::kFloat32) {
  Operand operand;
  operand.is_present = true;
  operand.type = type;
  operand.dims = std::move(dims);
  return operand;
}

OpSpec Op(std::string type, std::vector<Operand> inputs, Operand output) {
  OpSpec spec;
  spec.name = "node";
  spec.type = std::move(type);
  spec.opset = 20;
  spec.inputs = std::move(inputs);
  spec.outputs = {std::move(output)};
  return spec;
}

const Dims kImage = {2, 4, 6, 6};
const Dims kRows = {2, 3, 8};

OpSpec Norm(int64_t statistic_bytes) {
  OpSpec norm =
      Op("BatchNormalization", {Tensor(kImage), Tensor({4}), Tensor({4}), Tensor({4}), Tensor({4})},
         Tensor(kImage));
  norm.statistic_bytes = statistic_bytes;
  return norm;
}

// The specs of a chain; each operator carries on its first input.
size_t LengthOf(const std::vector<OpSpec>& specs, size_t carried = 0) {
  std::vector<ChainedOp> ops;
  for (const OpSpec& spec : specs) ops.push_back({&spec, nullptr, carried});
  return FusibleLength(ops);
}

TEST_CASE("fusion rules: a normalisation with the channels last goes on with operators in memory") {
  OpSpec norm = Norm(32);
  norm.inputs[0].is_channels_last = norm.outputs[0].is_channels_last = true;
  const Dims stored = {2, 6, 6, 4};
  const OpSpec relu = Op("Relu", {Tensor(stored)}, Tensor(stored));
  CHECK(LengthOf({norm, relu}) == 2);
  CHECK(LengthOf({norm, Op("Relu", {Tensor(kImage)}, Tensor(kImage))}) == 0);
}

TEST_CASE("fusion rules: a batch normalisation, a residual and a ReLU are one") {
  const OpSpec add = Op("Add", {Tensor(kImage), Tensor(kImage)}, Tensor(kImage));
  const OpSpec relu = Op("Relu", {Tensor(kImage)}, Tensor(kImage));
  CHECK(LengthOf({Norm(32), relu}) == 2);
  CHECK(LengthOf({Norm(32), add, relu}) == 3);
  CHECK(LengthOf({Norm(32), add, relu}, 1) == 2);  // ReLU has no second input.
  // Without a statistic the moments are gone when the last operator runs.
  CHECK(LengthOf({Norm(0), relu}) == 0);
  // A normalisation in the middle needs a pass of its own.
  CHECK(LengthOf({relu, Norm(32)}) == 0);
}

TEST_CASE("fusion rules: operands are whole, single or biases of the last axis") {
  const Operand rows = Tensor(kRows);
  const auto add = [&](Operand other) { return Op("Add", {rows, std::move(other)}, rows); };
  const OpSpec gelu = Op("Gelu", {rows}, rows);
  CHECK(LengthOf({add(Tensor({8})), gelu}) == 2);
  CHECK(LengthOf({add(Tensor({1, 1, 8})), gelu}) == 2);
  CHECK(LengthOf({add(Tensor({})), gelu}) == 2);
  CHECK(LengthOf({add(Tensor({3, 1})), gelu}) == 0);
  CHECK(LengthOf({add(Tensor({3, 8})), gelu}) == 0);
  CHECK(LengthOf({gelu, add(Tensor({3, 8}))}) == 0);
  CHECK(LengthOf({add(Tensor({8})), Op("Gelu", {rows}, Tensor({6, 8}))}) == 0);
  CHECK(LengthOf({Op("Add", {Tensor({8}), rows}, rows), gelu}) == 2);
}

TEST_CASE("fusion rules: an IsNaN is joined with the Where that it decides") {
  const Operand rows = Tensor(kRows);
  const Operand flags = Tensor(kRows, ElementType::kBool);
  const OpSpec test = Op("IsNaN", {rows}, flags);
  CHECK(LengthOf({test, Op("Where", {flags, Tensor({}), rows}, rows)}) == 2);
  CHECK(LengthOf({test, Op("Where", {flags, rows, Tensor({})}, rows)}) == 0);
  CHECK(LengthOf({test, Op("Where", {flags, Tensor({}), rows}, rows)}, 2) == 0);
}

TEST_CASE("fusion rules: a mask and a softmax are one if a warp holds the rows") {
  const auto scores = [](int64_t keys, Dims mask) {
    const Operand all = Tensor({2, 3, 5, keys});
    OpSpec softmax = Op("Softmax", {all}, all);
    softmax.attributes["axis"] = int64_t{-1};
    return LengthOf({Op("Add", {all, Tensor(std::move(mask))}, all), softmax});
  };
  CHECK(scores(512, {5, 512}) == 2);
  CHECK(scores(512, {2, 1, 1, 512}) == 2);
  CHECK(scores(1024, {1024}) == 2);
  CHECK(scores(1028, {5, 1028}) == 0);
  CHECK(scores(510, {5, 510}) == 0);
  CHECK(scores(512, {2, 1, 5, 1}) == 0);
}

TEST_CASE("fusion rules: chains have at most as many links as a kernel takes") {
  const std::vector<OpSpec> many(kMaxLinks + 5, Op("Tanh", {Tensor(kRows)}, Tensor(kRows)));
  CHECK(LengthOf(many) == kMaxLinks);
  CHECK(LengthOf({many[0]}) == 0);
}

}  // namespace
}  // namespace ckplan::cuda
