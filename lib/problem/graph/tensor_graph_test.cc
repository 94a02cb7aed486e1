#include "lib/problem/graph/tensor_graph.h"

#include <doctest/doctest.h>

#include "lib/problem/graph/vertex_graph.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// a writes t0 (4 bytes); b reads it and writes t1 (2 bytes).
TensorGraphParts TwoNodes() {
  TensorGraphParts parts;
  parts.name = "two";
  const TensorId t0 = parts.tensors.push_back({.file_id = 0, .name = "t0", .bytes = Bytes(4)});
  const TensorId t1 = parts.tensors.push_back({.file_id = 1, .name = "t1", .bytes = Bytes(2)});
  parts.nodes.push_back({.file_id = 0, .name = "a", .op = "x", .inputs = {}, .outputs = {t0}});
  parts.nodes.push_back({.file_id = 1, .name = "b", .op = "x", .inputs = {t0}, .outputs = {t1}});
  parts.outputs = {t1};
  return parts;
}

ErrorCode CodeOf(TensorGraphParts parts) {
  return TensorGraph::Create(std::move(parts)).error().code;
}

}  // namespace

TEST_CASE("tensor graph: producers and consumers are derived") {
  const TensorGraph graph = *TensorGraph::Create(TwoNodes());
  CHECK(graph.tensor(TensorId(0)).producer == NodeId(0));
  CHECK(graph.tensor(TensorId(0)).consumers == std::vector<NodeId>{NodeId(1)});
}

TEST_CASE("tensor graph: nodes come out in a topological order, the file's ids stay") {
  TensorGraphParts parts = TwoNodes();
  std::swap(parts.nodes[NodeId(0)], parts.nodes[NodeId(1)]);
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  CHECK(graph.node(NodeId(0)).name == "a");
  CHECK(graph.node(NodeId(0)).file_id == 0);
}

TEST_CASE("tensor graph: inconsistent parts are refused") {
  struct Row {
    const char* what;
    void (*damage)(TensorGraphParts*);
  };
  const Row rows[] = {
      {"a cycle", [](TensorGraphParts* p) { p->nodes[NodeId(0)].inputs = {TensorId(1)}; }},
      {"made twice", [](TensorGraphParts* p) { p->nodes[NodeId(1)].outputs = {TensorId(0)}; }},
      {"no such tensor", [](TensorGraphParts* p) { p->nodes[NodeId(1)].inputs = {TensorId(9)}; }},
      {"no output", [](TensorGraphParts* p) { p->nodes[NodeId(1)].outputs = {}; }},
      {"negative size", [](TensorGraphParts* p) { p->tensors[TensorId(0)].bytes = Bytes(-1); }},
      {"negative cost", [](TensorGraphParts* p) { p->nodes[NodeId(0)].forward_cost = Cost(-1); }},
      {"equal ids", [](TensorGraphParts* p) { p->tensors[TensorId(1)].file_id = 0; }},
      {"an input that is made",
       [](TensorGraphParts* p) { p->tensors[TensorId(0)].kind = TensorKind::kInput; }},
      {"a foreign backward read",
       [](TensorGraphParts* p) { p->nodes[NodeId(0)].backward_reads = {TensorId(1)}; }},
      {"sizes beyond the limit",
       [](TensorGraphParts* p) { p->tensors[TensorId(0)].bytes = kMaxTotalBytes; }},
      {"sizes that overflow",
       [](TensorGraphParts* p) {
         p->tensors[TensorId(0)].bytes = Bytes::Max();
         p->tensors[TensorId(1)].bytes = Bytes::Max();
       }},
      {"costs beyond the limit",
       [](TensorGraphParts* p) { p->nodes[NodeId(0)].forward_cost = Cost::Max(); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    TensorGraphParts parts = TwoNodes();
    row.damage(&parts);
    CHECK(CodeOf(std::move(parts)) == ErrorCode::kInvalidInput);
  }
}

TEST_CASE("tensor graph: all faults are reported at once") {
  TensorGraphParts parts = TwoNodes();
  parts.tensors[TensorId(0)].bytes = Bytes(-1);
  parts.nodes[NodeId(1)].forward_cost = Cost(-1);
  CHECK(TensorGraph::Create(std::move(parts)).error().notes.size() == 1);
}

TEST_CASE("tensor graph: alignment rounds every buffer up") {
  const TensorGraph graph = *AlignSizes(*TensorGraph::Create(TwoNodes()), 256);
  CHECK(graph.tensor(TensorId(0)).bytes == Bytes(256));
  CHECK(graph.tensor(TensorId(1)).bytes == Bytes(256));
}

TEST_CASE("vertex graph: M_v sums a node's outputs, each edge occurs once") {
  const TensorGraph graph = GraphFromText("a:4@2 -> b:2@3; a -> b");
  const VertexGraph vertices(graph);
  CHECK(vertices.total_memory() == Bytes(6));
  CHECK(vertices.total_time() == Cost(5));
  CHECK(vertices.successors(NodeId(0)).size() == 1);
  CHECK(vertices.predecessors(NodeId(1)).size() == 1);
}

}  // namespace ckplan
