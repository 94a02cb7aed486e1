#include "lib/problem/cost/table.h"

#include <doctest/doctest.h>

#include <fstream>

#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

constexpr const char* kTable = R"({"schema_version": "1.0", "unit": "ns", "nodes": [
  {"name": "a", "forward_cost": 10, "backward_cost": 20.6, "forward_workspace_bytes": 30,
   "backward_workspace_bytes": 40},
  {"name": "b", "forward_cost": 0, "backward_cost": 0.4}]})";

TEST_CASE("table: costs are found by name, rounded, and at least one") {
  const auto table = ParseCostTable(kTable, "costs.json");
  REQUIRE(table.ok());
  const auto costs = LookUpCosts(*table, {"b", "a"}, "costs.json");
  REQUIRE(costs.ok());
  CHECK(costs->at(0) == MeasuredCost{Cost(1), Cost(1), Bytes(0), Bytes(0)});
  CHECK(costs->at(1) == MeasuredCost{Cost(10), Cost(21), Bytes(30), Bytes(40)});
}

TEST_CASE("table: a repeated key and needless nesting are refused") {
  const auto fault = [](const std::string& row) {
    const auto table = ParseCostTable(
        R"({"schema_version": "1.0", "unit": "ns", "nodes": [{"name": "a", )" + row + "}]}",
        "costs.json");
    return table.ok() ? "none" : table.error().message;
  };
  CHECK(fault(R"("forward_cost": 1, "backward_cost": 1)") == "none");
  CHECK(fault(R"("forward_cost": 1, "backward_cost": 1, "forward_cost": 2)")
            .find("an object has a key twice") != std::string::npos);
  CHECK(fault("\"forward_cost\": " + std::string(100'000, '[') + std::string(100'000, ']'))
            .find("nest deeper than 100 levels") != std::string::npos);
}

TEST_CASE("table: all missing nodes are reported") {
  const auto table = ParseCostTable(kTable, "costs.json");
  REQUIRE(table.ok());
  const auto costs = LookUpCosts(*table, {"c", "a", "d"}, "costs.json");
  REQUIRE_FALSE(costs.ok());
  CHECK(costs.error().code == ErrorCode::kInvalidInput);
  CHECK(costs.error().message.find("2 faults: node \"c\" is missing") != std::string::npos);
  REQUIRE(costs.error().notes.size() == 1);
  CHECK(costs.error().notes[0] == "node \"d\" is missing");
}

TEST_CASE("table: nodes get the costs and workspaces of a file, whatever their order") {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.json";
  std::ofstream(path) << kTable;
  IdVector<NodeId, Node> nodes(2);
  nodes[NodeId(0)].name = "b";
  nodes[NodeId(1)].name = "a";
  REQUIRE(SetMeasuredCosts(path, nodes).ok());
  CHECK(nodes[NodeId(0)].backward_cost == Cost(1));
  CHECK(nodes[NodeId(1)].forward_cost == Cost(10));
  CHECK(nodes[NodeId(1)].backward_cost == Cost(21));
  CHECK(nodes[NodeId(1)].forward_workspace == Bytes(30));
  CHECK(nodes[NodeId(1)].backward_workspace == Bytes(40));
  nodes[NodeId(0)].name = "other";
  CHECK(SetMeasuredCosts(path, nodes).error().message.find("other") != std::string::npos);
}

TEST_CASE("table: a file that is not a cost table is refused with its faults") {
  for (
      const char* text :
      {"", "[]", "{\"nodes\": 3}", "{\"schema_version\": \"2.0\", \"unit\": \"ns\", \"nodes\": []}",
       "{\"schema_version\": \"1.0\", \"unit\": \"ms\", \"nodes\": []}",
       "{\"schema_version\": \"1.0\", \"nodes\": []}",
       R"({"schema_version": "1.0", "unit": "ns", "nodes": [3]})",
       R"({"schema_version": "1.0", "unit": "ns", "nodes": [{"name": "a", "forward_cost": -1, "backward_cost": 1}]})",
       R"({"schema_version": "1.0", "unit": "ns", "nodes": [{"name": "a", "forward_cost": 1e40, "backward_cost": 1}]})",
       R"({"schema_version": "1.0", "unit": "ns", "nodes": [{"name": "a", "forward_cost": 1}]})"}) {
    CAPTURE(text);
    const auto table = ParseCostTable(text, "costs.json");
    REQUIRE_FALSE(table.ok());
    CHECK(table.error().code == ErrorCode::kInvalidInput);
    CHECK(table.error().message.find("costs.json") != std::string::npos);
  }
  CHECK(ReadCostTable("no/such/costs.json").error().code == ErrorCode::kIo);
}

constexpr const char* kWorkspaceTable = R"({"schema_version": "1.0", "nodes": [
  {"name": "a", "forward_workspace_bytes": 30, "backward_workspace_bytes": 40},
  {"name": "b", "forward_workspace_bytes": 0, "backward_workspace_bytes": 7}]})";

TEST_CASE("table: workspaces come from a file of them, or of costs, and change no cost") {
  const TemporaryFolder folder;
  const std::string path = folder / "workspaces.json";
  const std::string costs = R"({"schema_version": "1.0", "unit": "ns", "nodes": [
    {"name": "a", "forward_cost": 9, "backward_cost": 9, "forward_workspace_bytes": 30,
     "backward_workspace_bytes": 40},
    {"name": "b", "forward_cost": 9, "backward_cost": 9, "forward_workspace_bytes": 0,
     "backward_workspace_bytes": 7}]})";
  for (const std::string& text : {std::string(kWorkspaceTable), costs}) {
    std::ofstream(path) << text;
    IdVector<NodeId, Node> nodes(2);
    nodes[NodeId(0)].name = "b";
    nodes[NodeId(1)].name = "a";
    for (Node& node : nodes) node.forward_cost = node.backward_cost = Cost(5);
    REQUIRE(SetWorkspaces(path, nodes).ok());
    CHECK(nodes[NodeId(0)].forward_workspace == Bytes(0));
    CHECK(nodes[NodeId(0)].backward_workspace == Bytes(7));
    CHECK(nodes[NodeId(1)].forward_workspace == Bytes(30));
    CHECK(nodes[NodeId(1)].backward_workspace == Bytes(40));
    CHECK(nodes[NodeId(0)].forward_cost == Cost(5));
    CHECK(nodes[NodeId(1)].backward_cost == Cost(5));
  }
}

TEST_CASE("table: a file of workspaces says both of each node, and has every node") {
  const std::string half = R"({"schema_version": "1.0", "nodes": [
    {"name": "a", "forward_workspace_bytes": 30}]})";
  const auto table = ParseWorkspaceTable(half, "w.json");
  REQUIRE_FALSE(table.ok());
  CHECK(table.error().code == ErrorCode::kInvalidInput);
  CHECK(table.error().message ==
        "file of workspaces \"w.json\": 1 fault: node \"a\" has no \"backward_workspace_bytes\"; "
        "write it with `ckexec profile --device NAME MODEL -o workspaces.json`");
  const TemporaryFolder folder;
  const std::string path = folder / "workspaces.json";
  std::ofstream(path) << kWorkspaceTable;
  IdVector<NodeId, Node> nodes(1);
  nodes[NodeId(0)].name = "c";
  const auto set = SetWorkspaces(path, nodes);
  REQUIRE_FALSE(set.ok());
  CHECK(set.error().message.find("node \"c\" is missing") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
