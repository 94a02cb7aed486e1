#include "lib/planning/algorithms/feng/division_tree_dot.h"

#include <doctest/doctest.h>

#include "lib/testing/graph_text.h"

namespace ckplan {

TEST_CASE("division tree dot: a branched block in a chain") {
  const TensorGraph graph = GraphFromText("s:1 -> a:2 -> c:3 -> e:1024 -> t:5; a -> \"d\":4 -> e");
  CHECK(*WriteDivisionTreeDot(graph) == R"(digraph "text" {
  rankdir=LR;
  node [fontname="Helvetica", fontsize=11];
  c0 [label="s → t\nsplittable, 1.01 KiB", shape=box];
  v0 [label="s\n1 B", shape=plaintext];
  c0 -> v0;
  v1 [label="a\n2 B", shape=plaintext];
  c0 -> v1;
  c0 -> c2;
  v4 [label="e\n1.00 KiB", shape=plaintext];
  c0 -> v4;
  v5 [label="t\n5 B", shape=plaintext];
  c0 -> v5;
  c2 [label="a → e\nbranched, 7 B", shape=ellipse];
  c2 -> c4;
  c2 -> c5;
  c4 [label="a → e\nsplittable, 3 B", shape=box];
  v2 [label="c\n3 B", shape=plaintext];
  c4 -> v2;
  c5 [label="a → e\nsplittable, 4 B", shape=box];
  v3 [label="\"d\"\n4 B", shape=plaintext];
  c5 -> v3;
}
)");
}

TEST_CASE("division tree dot: a lone vertex is given a virtual target") {
  CHECK(*WriteDivisionTreeDot(GraphFromText("a:7")) == R"(digraph "text" {
  rankdir=LR;
  node [fontname="Helvetica", fontsize=11];
  c0 [label="a → target\nedge, 0 B", shape=box];
  v0 [label="a\n7 B", shape=plaintext];
  c0 -> v0;
}
)");
}

}  // namespace ckplan
