#include "lib/emit/division_tree_dot.h"

#include <doctest/doctest.h>

#include "lib/testing/graph_text.h"

namespace ckplan {

TEST_CASE("division tree dot: a branched block in a chain") {
  const TensorGraph graph = GraphFromText("s:1 -> a:2 -> c:3 -> e:1024 -> t:5; a -> \"d\":4 -> e");
  CHECK(*WriteDivisionTreeDot(graph) == R"(digraph "text" {
  rankdir=LR;
  node [fontname="Helvetica", fontsize=11];
  c0 [label="s → t\nsplittable, 1.01 KiB\nat a, e\n2 edges", shape=box];
  c0 -> c2;
  c2 [label="a → e\nbranched, 7 B", shape=ellipse];
  c2 -> c4;
  c2 -> c5;
  c4 [label="a → e\nsplittable, 3 B\nat c\n2 edges", shape=box];
  c5 [label="a → e\nsplittable, 4 B\nat \"d\"\n2 edges", shape=box];
}
)");
}

TEST_CASE("division tree dot: a lone vertex has the target that it lacks") {
  CHECK(*WriteDivisionTreeDot(GraphFromText("a:7")) == R"(digraph "text" {
  rankdir=LR;
  node [fontname="Helvetica", fontsize=11];
  c0 [label="a → target\nedge, 0 B", shape=box];
}
)");
}

}  // namespace ckplan
