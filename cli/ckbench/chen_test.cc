#include <doctest/doctest.h>

#include "cli/ckbench/all_reproductions.h"
#include "cli/ckbench/synthetic_graph.h"

namespace ckplan {

TEST_CASE("chen: the LSTM's weights, and its memory with gradients of the weights at every step") {
  // The first layer has 1,074 * 4,096 = 4,399,104 weights, from 50 inputs and 1,024 states to four
  // gates. The other three layers have 25,165,824, from 2,048 values to four gates each. The layer
  // below the softmax has 1,024 * 5,000 = 5,120,000. Each weight has 4 bytes.
  const Bytes weights = LstmWeights(4, 1024, 50, 5000);
  CHECK(weights == Bytes(138'739'712));
  // The gradients of 64 steps take 8,879,341,568 bytes; updated in place they take 0.1 GB.
  const FigureTable& table = TableOf("chen", "Figure 6, unrolled");
  const auto row = [&](const char* how) { return *RowOf(table, "LSTM, 64 steps", how).ours; };
  CHECK(std::abs(row("no optimization, with gradients of weights") - row("no optimization") - 89) <=
        1);
  CHECK(std::abs(row("inplace, with gradients of weights") - row("inplace") - 1) <= 1);
}

TEST_CASE("chen: the sublinear plan adds the part of a step that it recomputes") {
  // Backward is twice forward, so a step is three forward passes.
  const FigureTable& table = TableOf("chen", "Figure 5, residual");
  const auto row = [&](const char* how) { return *RowOf(table, "ResNet, 1001 layers", how).ours; };
  CHECK(row("time added by the sublinear plan") == row("recomputed by the sublinear plan") / 3);
}

TEST_CASE("chen: graph colouring and the arena are no worse than in place, in both plans") {
  const FigureTable& table = TableOf("chen", "Figure 5, residual");
  for (const char* network : {"ResNet, 50 layers", "ResNet, 200 layers", "ResNet, 1001 layers"}) {
    CAPTURE(network);
    const auto row = [&](const char* how) { return *RowOf(table, network, how).ours; };
    CHECK(row("graph colouring") <= row("inplace"));
    CHECK(row("arena of a plan") <= row("no optimization"));
    CHECK(row("sublinear plan, graph colouring") < row("graph colouring"));
    CHECK(row("sublinear plan, arena of a plan") < row("arena of a plan"));
  }
}

TEST_CASE("chen: under the cost model the sublinear plan adds less than a forward pass") {
  // A forward pass is a third of a step, or more if there are many operations that move memory:
  // their backward reads and writes less than twice as much as their forward.
  const FigureTable& table = TableOf("chen", "Figure 7");
  REQUIRE(table.figures.size() == 4);
  for (const Figure& figure : table.figures) {
    CHECK(figure.paper == 300);
    CHECK(*figure.ours > 150);
    CHECK(*figure.ours < 400);
  }
}

TEST_CASE("chen: figures that only a GPU can measure have rows with the command") {
  const FigureTable& table = TableOf("chen", "Figures 5b");
  REQUIRE(table.figures.size() == 4);
  for (const Figure& figure : table.figures) CHECK((!figure.ours && figure.note == 1));
  CHECK(table.notes.front().find("--backend cuda") != std::string::npos);
}

}  // namespace ckplan
