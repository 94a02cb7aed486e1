#include "lib/files/model/node_order.h"

#include <doctest/doctest.h>

#include "lib/files/model/testing.h"

namespace ckplan {
namespace {

TEST_CASE("node order: nodes that are read before they are made are sorted, with a warning") {
  const auto model =
      LoadText("g (float[4,8] x) => (float[4,8] y) { y = Add(a, b) b = Sigmoid(a) a = Relu(x) }");
  REQUIRE(model.ok());
  REQUIRE(model->warnings().size() == 1);
  CHECK(model->warnings()[0].find("read before they are made") != std::string::npos);
  const ModelGraph sorted =
      LowerText("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Sigmoid(a) y = Add(a, b) }");
  const ModelGraph lowered =
      LowerText("g (float[4,8] x) => (float[4,8] y) { y = Add(a, b) b = Sigmoid(a) a = Relu(x) }");
  CHECK(lowered.graph.nodes().size() == sorted.graph.nodes().size());
}

TEST_CASE("node order: a sorted graph stays as it is, and a cycle is refused") {
  const auto model =
      LoadText("g (float[4,8] x) => (float[4,8] y) { b = Relu(x) a = Relu(x) y = Add(a, b) }");
  REQUIRE(model.ok());
  CHECK(model->warnings().empty());
  for (const char* const nodes :
       {"a = Add(x, y) y = Relu(a)", "a = Add(b, y) y = Relu(a) b = Relu(x)"}) {
    const auto cycle =
        LoadText(std::string("g (float[4,8] x) => (float[4,8] y) { ") + nodes + " }");
    REQUIRE_FALSE(cycle.ok());
    CHECK(cycle.error().message.find("(Add) reads \"y\", which needs its result in turn") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace ckplan
