#include "lib/problem/schedule/canonical_figures.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/testing/graph_text.h"

namespace ckplan {

TEST_CASE("canonical: Eq. 1 and Eq. 2 on a chain, worked by hand") {
  // a:4@1 → b:2@3 → c:1@5 → d:8@7, cut after b: V1 = {a, b}, V2 = {c, d}.
  //   U1 = {b};  M1 = 0 + 2 (4 + 2) + M({c}) + M({}) = 13;  M2 = 2 + 2 (1 + 8) = 20
  //   T = T({a}) + T({c, d}) = 1 + 12
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5 -> d:8@7");
  const VertexGraph vertices(graph);
  const IdVector<NodeId, int32_t> segment_of(std::vector<int32_t>{0, 0, 1, 1});
  const CanonicalFigures figures = EvaluateCanonical(vertices, segment_of, 2);
  CHECK(figures.peak == Bytes(20));
  CHECK(figures.overhead == Cost(13));
  CHECK(figures.segment_peaks == std::vector<Bytes>{Bytes(13), Bytes(20)});
}

TEST_CASE("canonical: the last two terms of Eq. 2 may overlap and are both counted") {
  // L = {a}: its successors are b and c; b, the other predecessor of c, lies outside L as well.
  //   M1 = 2 * 1 + M({b, c}) + M({b}) = 2 + 6 + 2
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> c:4; a -> c");
  const VertexGraph vertices(graph);
  const IdVector<NodeId, int32_t> segment_of(std::vector<int32_t>{0, 1, 1});
  const CanonicalFigures figures = EvaluateCanonical(vertices, segment_of, 2);
  CHECK(figures.peak == Bytes(13));  // M2 = 1 + 2 * 6.
  CHECK(figures.segment_peaks == std::vector<Bytes>{Bytes(10), Bytes(13)});
}

}  // namespace ckplan
