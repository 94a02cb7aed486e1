#include "lib/files/emit/dot.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"

namespace ckplan {

namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the output of `dot -Tsvg` for the text; dot must succeed without warnings.
std::string Render(const std::string& dot) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ckplan_dot_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "in.dot", std::ios::binary) << dot;
  const std::string command =
      "cd '" + folder.string() + "' && dot -Tsvg in.dot -o out.svg 2> messages";
  CAPTURE(dot);
  CHECK(std::system(command.c_str()) == 0);
  CHECK(ReadFile(folder / "messages") == "");
  const std::string svg = ReadFile(folder / "out.svg");
  std::filesystem::remove_all(folder);
  return svg;
}

bool HasDot() {
  if (std::system("command -v dot > /dev/null 2>&1") == 0) return true;
  MESSAGE("SKIPPED: Graphviz is not installed, so no picture was drawn; install graphviz");
  return false;
}

Plan PlanFor(const TensorGraph& graph, uint64_t seed) {
  Rng rng(seed);
  return RandomPlan(rng, graph);
}

}  // namespace

TEST_CASE("dot: the graph alone") {
  CHECK(WriteDot(GraphFromText("a:1536@1 -> b:2@3; a -> c:0@1"), nullptr) == R"(digraph "text" {
  rankdir=TB;
  node [fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=9];
  n0 [label="a", shape=box];
  n1 [label="b", shape=box];
  n2 [label="c", shape=box];
  n0 -> n1 [label="1.50 KiB", tooltip="a"];
  n0 -> n2 [label="1.50 KiB", tooltip="a"];
}
)");
}

TEST_CASE("dot: segments are clusters, each action has its own shape and colour") {
  const TensorGraph graph = GraphFromText("a:1@1 -> b:2@3 -> c:4@1");
  Plan plan;
  plan.request.algorithm = "exact-dp";
  plan.figures.peak = Bytes(2048);
  plan.figures.baseline_peak = Bytes(4096);
  plan.decisions.push_back({NodeAction::kKeep, 0, 0});
  plan.decisions.push_back({NodeAction::kRecompute, 0, 2});
  plan.decisions.push_back({NodeAction::kTransient, 1, 0});
  CHECK(WriteDot(graph, &plan) == R"(digraph "text" {
  rankdir=TB;
  node [fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=9];
  labelloc=t;
  label="exact-dp: peak 2.00 KiB, keep-all 4.00 KiB\nbox: keep   ellipse: recompute   hexagon: transient";
  subgraph cluster_0 {
    label="segment 0";
    color="#999999";
    n0 [label="a", shape=box, style=filled, fillcolor="#56B4E9"];
    n1 [label="b\nruns 3x", shape=ellipse, style=filled, fillcolor="#E69F00"];
  }
  subgraph cluster_1 {
    label="segment 1";
    color="#999999";
    n2 [label="c", shape=hexagon, style=dashed];
  }
  n0 -> n1 [label="1 B", tooltip="a"];
  n1 -> n2 [label="2 B", tooltip="b"];
}
)");
}

TEST_CASE("dot: Graphviz draws every graph and plan without warnings") {
  if (!HasDot()) return;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Plan plan = PlanFor(graph, seed);
    CHECK(Render(WriteDot(graph, nullptr)).find("</svg>") != std::string::npos);
    CHECK(Render(WriteDot(graph, &plan)).find("</svg>") != std::string::npos);
  }
}

TEST_CASE("dot: names arrive in the picture as they are") {
  if (!HasDot()) return;
  const struct {
    std::string name, svg;
  } kRows[] = {
      {"/layer1/conv", "/layer1/conv"},
      {"say \"hi\"", "say &quot;hi&quot;"},
      {"back\\slash\\", "back\\slash\\"},
      {"\\N \\G", "\\N \\G"},
      {"a&lt;b&amp;", "a&amp;lt;b&amp;amp;"},
      {"<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"},
      {"日本", "日本"},
      {"tab\tline\nend", "tab\\tline\\nend"},
      {"bad\xff"
       "byte",
       "bad\\xffbyte"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.name);
    const std::vector<TextVertex> vertices = {{row.name, Bytes(1), Cost(1)},
                                              {"next", Bytes(1), Cost(1)}};
    const TensorGraph graph = GraphFromVertices(row.name, vertices, {{0, 1}});
    const std::string svg = Render(WriteDot(graph, nullptr));
    CAPTURE(svg);
    // dot escapes spaces and hyphens in labels.
    std::string plain;
    for (size_t at = 0; at < svg.size(); ++at) {
      const bool is_space = svg.compare(at, 6, "&#160;") == 0;
      const bool is_hyphen = svg.compare(at, 5, "&#45;") == 0;
      plain += is_space ? ' ' : is_hyphen ? '-' : svg[at];
      at += is_space ? 5 : is_hyphen ? 4 : 0;
    }
    CHECK(plain.find(">" + row.svg + "</text>") != std::string::npos);
  }
}

namespace {

// Builds a chain of `count` nodes that the function names.
template <typename NameOf>
TensorGraph NamedChain(int32_t count, NameOf name_of) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < count; ++i) {
    vertices.push_back({name_of(i), Bytes(1024), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  return GraphFromVertices("chain", vertices, edges);
}

int Count(const std::string& text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string Folded(const TensorGraph& graph, const Plan* plan = nullptr) {
  return WriteFoldedDot(graph, plan);
}

}  // namespace

TEST_CASE("folded dot: boxes are the deepest modules that are not too many") {
  // The graph has 4 stages of 10 blocks of 10 nodes. The 40 blocks become boxes, because 400 nodes
  // are too many.
  const TensorGraph graph = NamedChain(400, [](int32_t i) {
    return "/stage" + std::to_string(i / 100) + "/block" + std::to_string(i / 10) + "/op" +
           std::to_string(i) + "/run";
  });
  const std::string text = Folded(graph);
  CHECK(Count(text, "10 nodes") == 40);
  CHECK(text.find("m0 [label=\"/stage0/block0\\n10 nodes\", shape=box];") != std::string::npos);
  CHECK(Count(text, " -> ") == 39);
  CHECK(Count(text, "label=\"1.00 KiB\"") == 39);
}

TEST_CASE("folded dot: without modules, segments of the plan or runs of nodes") {
  const TensorGraph graph = NamedChain(400, [](int32_t i) { return "op" + std::to_string(i); });
  const std::string text = Folded(graph);
  CHECK(Count(text, "7 nodes\"") == 57);  // The last box has one node.
  CHECK(text.find("op0 ... op6\\n7 nodes") != std::string::npos);
  IdVector<NodeId, bool> is_kept;
  IdVector<NodeId, int32_t> segment_of;
  for (int32_t i = 0; i < 400; ++i) {
    is_kept.push_back(i % 2 == 0 || i >= 200);
    segment_of.push_back(i / 100);
  }
  const Plan plan =
      AssemblePlan(graph, LowerStrategy(graph, KeptSet{is_kept}), std::move(segment_of));
  const std::string planned = Folded(graph, &plan);
  CHECK(planned.find("segment 0\\n100 nodes, 50 run again\\nkeeps 50.00 KiB") != std::string::npos);
  CHECK(planned.find("segment 3\\n100 nodes, 0 run again") != std::string::npos);
  CHECK(Count(planned, "#56B4E9:#E69F00") == 2);
}

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
