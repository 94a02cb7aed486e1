#include "cli/ckbench/chainer_run.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ckplan {
namespace {

constexpr int64_t kUnit = 512;  // CuPy's pool rounds sizes up to it.

// x → a → b | c → d, of which each backward reads its own result. All have the size of one unit.
ChainerNetwork ChainOfKinds(const std::vector<std::string>& kinds) {
  ChainerNetwork network;
  for (size_t v = 0; v < kinds.size() + 1; ++v) {
    network.variables.push_back({Bytes(kUnit), /*is_made=*/v > 0, /*is_parameter=*/false});
  }
  for (size_t f = 0; f < kinds.size(); ++f) {
    network.functions.push_back({kinds[f], {f}, f + 1, {f + 1}, {f}});
  }
  return network;
}

int64_t Units(const ChainerNetwork& network, bool has_liveness) {
  return ChainerPeak(network, {0, 0, 1, 1}, 2, has_liveness).count() / kUnit;
}

}  // namespace

TEST_CASE("chainer run: what functions hold, and what is a view") {
  struct Row {
    const char* name;
    std::vector<std::string> kinds;
    int64_t with_liveness;
    int64_t without;
  };
  const std::vector<Row> rows = {
      // Without liveness the peak is in backward of a: x, a, b, and the gradients of c, b, a and x.
      // c is made again for its backward, and released before. With liveness it is in the second
      // forward of d: x, b, c, d and the gradient of d, whose new one is made before the old goes.
      {"nothing", {"Tanh", "Tanh", "Tanh", "Tanh"}, 6, 7},
      // The scale, and in backward a buffer. In the second segment's steps the object still holds a
      // and its scale.
      {"the scale and the result", {"LocalResponseNormalization", "Tanh", "Tanh", "Tanh"}, 8, 9},
      {"the mask", {"Dropout", "Tanh", "Tanh", "Tanh"}, 7, 8},
      {"the probabilities", {"Tanh", "Tanh", "Tanh", "SoftmaxCrossEntropy"}, 7, 8},
      {"a is a part of x", {"GetItem", "Tanh", "Tanh", "Tanh"}, 6, 6},
      {"b is a", {"Tanh", "Reshape", "Tanh", "Tanh"}, 6, 6},
      {"the gradient of a is that of b", {"Tanh", "Concat", "Tanh", "Tanh"}, 6, 6},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(Units(ChainOfKinds(row.kinds), /*has_liveness=*/true) == row.with_liveness);
    CHECK(Units(ChainOfKinds(row.kinds), /*has_liveness=*/false) == row.without);
  }
}

TEST_CASE("chainer run: sizes are rounded up, and parameters have gradients from backward on") {
  ChainerNetwork network = ChainOfKinds({"Tanh", "Tanh", "Tanh", "Tanh"});
  for (ChainerVariable& variable : network.variables) variable.bytes = Bytes(kUnit - 1);
  CHECK(Units(network, /*has_liveness=*/false) == 7);
  // d has a parameter of ten units. Its gradient is there when the peak is, in backward of a; the
  // second forward of d, which is the peak with liveness otherwise, is before it.
  network.variables.push_back({Bytes(10 * kUnit), /*is_made=*/false, /*is_parameter=*/true});
  network.functions.back().inputs.push_back(5);
  network.functions.back().gradients.push_back(5);
  CHECK(Units(network, /*has_liveness=*/false) == 7 + 20);
  CHECK(Units(network, /*has_liveness=*/true) == 6 + 20);
  // a's comes last.
  network.functions.back().inputs.pop_back();
  network.functions.back().gradients.pop_back();
  network.functions.front().inputs.push_back(5);
  network.functions.front().gradients.push_back(5);
  CHECK(Units(network, /*has_liveness=*/true) == 4 + 20);
}

TEST_CASE("chainer run: two contributions to a gradient need a third array for their sum") {
  // x → a → b, and c = a + b.
  ChainerNetwork network = ChainOfKinds({"Tanh", "Tanh", "Add"});
  network.functions.back() = {"Add", {1, 2}, 3, {}, {1, 2}};
  // In backward of b: x, a, b, the gradient of c, which that of a and of b are, b's contribution
  // to that of a, and the sum. Forward has x, a, b, c and twice the gradient of c.
  CHECK(ChainerPeak(network, {0, 0, 0}, 1, /*has_liveness=*/true) == Bytes(6 * kUnit));
}

TEST_CASE("chainer run: a schedule of the authors' program, and its faults") {
  const ChainerNetwork network = ChainOfKinds({"Tanh", "Tanh"});
  // x, a, b and the gradient of b; then that of a in b's place, and that of x.
  CHECK(ChainerPeak(network,
                    "compute 0\ncompute 1\ncompute 3 0\nforget 2 forward\nforget 2 backward\n"
                    "compute 2 0\n",
                    "s.txt")
            .value() == Bytes(5 * kUnit));
  CHECK(ChainerPeak(network, "compute 0\ncompute 1\nforget 1 forward\n", "s.txt").value() ==
        Bytes(4 * kUnit));
  for (const char* line : {"compute 4", "compute", "forget 3 forward", "forget 1 sideways",
                           "compute 3 1", "compute x", "IMPOSSIBLE"}) {
    CAPTURE(line);
    const auto peak = ChainerPeak(network, std::string("compute 0\n") + line + "\n", "s.txt");
    REQUIRE(!peak.ok());
    CHECK(peak.error().message.starts_with("s.txt: line 2: "));
  }
}

}  // namespace ckplan
