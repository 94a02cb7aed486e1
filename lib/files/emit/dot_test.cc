#include "lib/files/emit/dot.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "lib/base/rng.h"
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
    // dot writes spaces and hyphens in labels as entities.
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

}  // namespace ckplan
