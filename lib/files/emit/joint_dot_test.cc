#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/files/emit/dot.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/planning/plan/assemble.h"

namespace ckplan {
namespace {

// x ──▶ f ──▶ a ──▶ b (backward)      lone: not needed
JointGraph Small() {
  return ReadJointGraphJson(R"({"kind": "joint", "name": "s\"mall",
    "values": [{"id": 1, "name": "x", "bytes": 1, "kind": "constant"},
               {"id": 2, "name": "a", "bytes": 2048, "kind": "value"},
               {"id": 3, "name": "dx", "bytes": 4, "kind": "value"},
               {"id": 4, "name": "l", "bytes": 4, "kind": "value"}],
    "ops": [{"id": 7, "name": "f", "op": "Relu", "reads": [1], "writes": [2], "cost": 1},
            {"id": 8, "name": "lone", "reads": [1], "writes": [4], "cost": 1},
            {"id": 9, "name": "b", "phase": "backward", "reads": [2], "writes": [3], "cost": 1}],
    "results": [3]})",
                            "g.json")
      .value();
}

}  // namespace

TEST_CASE("joint dot: a graph, to the byte") {
  CHECK(WriteDot(Small(), nullptr) == R"(digraph "s\"mall" {
  rankdir=TB;
  node [fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=9];
  v0 [label="x", shape=plaintext];
  subgraph cluster_forward {
    label="forward";
    color="#999999";
    n0 [label="f\nRelu", shape=box];
    n1 [label="lone", shape=box];
  }
  subgraph cluster_backward {
    label="backward";
    color="#999999";
    n2 [label="b", shape=box];
  }
  v0 -> n0 [label="1 B", tooltip="x"];
  v0 -> n1 [label="1 B", tooltip="x"];
  n0 -> n2 [label="2.00 KiB", tooltip="a"];
}
)");
}

TEST_CASE("joint dot: the edges of values that move to the host are dashed") {
  const JointGraph graph = Small();
  const Link link;
  const ValueId a(1);
  const Schedule schedule{
      {Step::Run(OpId(0)), Step::Out(a), Step::Drop(a), Step::In(a), Step::Run(OpId(2))}};
  const Plan plan = AssemblePlan(TrainingStep(graph).WithLink(&link), schedule);
  const std::string text = WriteDot(graph, &plan);
  CHECK(text.find("n0 -> n2 [label=\"2.00 KiB\", tooltip=\"a\", style=dashed];") !=
        std::string::npos);
  CHECK(text.find("v0 -> n0 [label=\"1 B\", tooltip=\"x\"];") != std::string::npos);
  CHECK(text.find("dashed: moved to the host") != std::string::npos);
}

TEST_CASE("joint dot: operations that run again or never run are marked") {
  const JointGraph graph = Small();
  Plan plan = AssembleRuns(graph, std::vector<OpId>{OpId(0), OpId(0), OpId(2)});
  plan.request.algorithm = "best";
  const std::string text = WriteDot(graph, &plan);
  for (const std::string part :
       {"label=\"best: peak 2.00 KiB, keep-all 2.00 KiB\\n",
        "n0 [label=\"f\\nRelu\\nruns 2x\", shape=ellipse", "n1 [label=\"lone\", shape=hexagon",
        "n2 [label=\"b\", shape=box, style=filled"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace ckplan
