#include "lib/problem/cost/cost_model.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>

#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

TEST_CASE("cost: each spelling is read, and written in the same way again") {
  for (const char* text : {"flops:a100-40g", "flops:h200-141g", "paper", "unit"}) {
    const auto model = ParseCostModel(text);
    REQUIRE(model.ok());
    CHECK(model->name() == text);
  }
  CHECK(ParseCostModel("flops")->name() == "flops:a100-40g");
  CHECK(ParseCostModel("file:a:b.json")->path == "a:b.json");
  CHECK(ParseCostModel("file:a.json")->name() == "file");
}

TEST_CASE("cost: other spellings are usage errors that list the known ones") {
  for (const char* text : {"", "flop", "paper:x", "unit:1", "file", "file:", "flops:"}) {
    CAPTURE(text);
    const auto model = ParseCostModel(text);
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kUsage);
  }
  const auto device = ParseCostModel("flops:abacus");
  REQUIRE_FALSE(device.ok());
  CHECK(device.error().notes.at(0).find("a100-40g, a100-80g") != std::string::npos);
}

TEST_CASE("cost: a unique beginning of a device's name is enough") {
  CHECK(FindDevice("rtx4090")->name == "rtx4090-24g");
  CHECK(FindDevice("a100-40g")->name == "a100-40g");
  CHECK_FALSE(FindDevice("rtx").ok());
  const Result<Device> several = FindDevice("a100");
  REQUIRE_FALSE(several.ok());
  CHECK(several.error().code == ErrorCode::kUsage);
  CHECK(several.error().message.find("a100-40g or a100-80g") != std::string::npos);
}

TEST_CASE("cost: every preset has all rates and a memory size") {
  const auto devices = ListDevices();
  REQUIRE(devices.ok());
  std::set<std::string> names;
  for (const Device& device : *devices) {
    CAPTURE(device.name);
    CHECK(names.insert(device.name).second);
    CHECK_FALSE(device.description.empty());
    CHECK(device.matrix_flops_per_second >= device.vector_flops_per_second);
    CHECK(device.vector_flops_per_second > 1e11);
    CHECK(device.bytes_per_second > 1e10);
    CHECK(device.launch_ns > 0);
    CHECK(device.memory >= Bytes(int64_t{6} << 30));
    // Tensor cores process FP8 twice as fast as 16-bit values, up to rounding in data sheets.
    if (device.fp8_matrix_flops_per_second) {
      const double ratio =
          *device.fp8_matrix_flops_per_second / device.half_matrix_flops_per_second;
      CHECK(ratio > 1.99);
      CHECK(ratio < 2.03);
    }
    CHECK(device.host_link.has_value() == (device.name != "cpu"));
  }
  CHECK(names.contains(std::string(kDefaultDevice)));
}

TEST_CASE("cost: rates of FP8 and links to the host are those of the data sheets") {
  const struct {
    const char* name;
    double fp8;  // In TFLOPS without sparsity; 0 if the device has no FP8.
    const char* link;
    double each_way;  // In GB/s.
  } kRows[] = {
      {"v100-16g", 0, "PCIe 3 x16", 15.75},   {"a100-80g", 0, "PCIe 4 x16", 31.5},
      {"h100-80g", 1978.9, "PCIe 5 x16", 63}, {"h100pcie", 1513, "PCIe 5 x16", 63},
      {"h200", 1978.9, "PCIe 5 x16", 63},     {"gh200-96g", 1978.9, "NVLink-C2C", 450},
      {"b200", 4500, "PCIe 5 x16", 63},       {"gb200", 5000, "NVLink-C2C", 450},
      {"mi300x", 2614.9, "PCIe 5 x16", 63},   {"mi355x", 5033.2, "PCIe 5 x16", 63},
      {"l40s", 733, "PCIe 4 x16", 31.5},      {"rtx4090", 330.3, "PCIe 4 x16", 31.5},
      {"rtx5090", 419, "PCIe 5 x16", 63},     {"rtxpro6000", 1007.6, "PCIe 5 x16", 63},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.name);
    const Device device = FindDevice(row.name).value();
    CHECK(device.fp8_matrix_flops_per_second.value_or(0) == doctest::Approx(row.fp8 * 1e12));
    REQUIRE(device.host_link.has_value());
    CHECK(device.host_link->name == row.link);
    CHECK(device.host_link->bytes_per_second == doctest::Approx(row.each_way * 1e9));
  }
}

TEST_CASE("cost: a product of 16-bit tensors costs what the device's 16-bit rate says") {
  // 989.4 TFLOP take a second in 16 bits, and two seconds in TF32. The FP8 rate is not used.
  CostModel model = ParseCostModel("flops:h100-80g").value();
  OpWork work;
  work.uses_matrix_units = true;
  work.forward_flops = 989'400'000'000'000;
  work.has_half_operands = true;
  CHECK(CostOf(model, work).forward == Cost(1'000'004'000));
  work.has_half_operands = false;
  CHECK(CostOf(model, work).forward == Cost(2'000'004'000));
  work.has_half_operands = true;
  model.device.fp8_matrix_flops_per_second = 1;
  model.device.host_link.reset();
  CHECK(CostOf(model, work).forward == Cost(1'000'004'000));
}

TEST_CASE("cost: the cards that the papers measured on are presets") {
  // Each core does two operations per cycle: Kusumoto et al.'s Tesla K40c has 2 * 2880 * 745 MHz =
  // 4.2912e12, Chen et al.'s Titan X has 2 * 3072 * 1075 MHz = 6.6048e12. Each row needs one second
  // of arithmetic and one of memory traffic on its device; a launch adds 5,000 ns.
  struct Row {
    const char* name;
    int64_t flops, traffic;
  };
  for (const Row& row : {Row{"flops:k40-12g", 4'290'000'000'000, 288'000'000'000},
                         Row{"flops:titan-x-12g", 6'600'000'000'000, 336'500'000'000}}) {
    CAPTURE(row.name);
    const CostModel model = ParseCostModel(row.name).value();
    OpWork work;
    work.uses_matrix_units = true;
    work.forward_flops = row.flops;
    work.backward_traffic = Bytes(row.traffic);
    CHECK(CostOf(model, work).forward == Cost(1'000'005'000));
    CHECK(CostOf(model, work).backward == Cost(1'000'005'000));
  }
  CHECK(ParseCostModel("flops:rtx3090-24g").ok());  // The card of Hong et al.
}

TEST_CASE("cost: flops takes the slower of arithmetic and memory, plus the launch") {
  CostModel model;
  model.device.matrix_flops_per_second = 1e12;
  model.device.half_matrix_flops_per_second = 2e12;
  model.device.vector_flops_per_second = 1e11;
  model.device.bytes_per_second = 1e9;
  model.device.launch_ns = 100;
  OpWork work;
  work.forward_flops = 5'000'000;
  work.forward_traffic = Bytes(1000);
  work.backward_flops = 10'000;
  work.backward_traffic = Bytes(2000);
  CHECK(CostOf(model, work).forward == Cost(50'000 + 100));  // 5e6 / 1e11 s
  CHECK(CostOf(model, work).backward == Cost(2'000 + 100));  // 2000 / 1e9 s
  work.uses_matrix_units = true;
  CHECK(CostOf(model, work).forward == Cost(5'000 + 100));
  work.has_half_operands = true;
  CHECK(CostOf(model, work).forward == Cost(2'500 + 100));
}

TEST_CASE("cost: a device that is not there is named with the one that was meant") {
  const Error unknown = FindDevice("4090").error();
  CHECK(unknown.message == "no device preset is named \"4090\"; did you mean \"rtx4090-24g\"?");
  CHECK(unknown.notes.at(0).starts_with("the presets are a100-40g, "));
  CHECK(FindDevice("h100").value().name == "h100-80g");
  CHECK(FindDevice("rtx5090").value().memory == Bytes(int64_t{32} << 30));
}

TEST_CASE("cost: nanoseconds are rounded to the nearest and never to nothing") {
  CostModel model;
  model.device.matrix_flops_per_second = 1e9;
  model.device.vector_flops_per_second = 1e9;
  model.device.bytes_per_second = 2e9;
  OpWork work;
  CHECK(CostOf(model, work).forward == Cost(1));
  work.forward_traffic = Bytes(5);
  CHECK(CostOf(model, work).forward == Cost(3));  // 2.5 is rounded up.
  work.forward_traffic = Bytes(4);
  CHECK(CostOf(model, work).forward == Cost(2));
}

TEST_CASE("cost: the papers charge ten for a convolution and one for anything else") {
  const CostModel paper = ParseCostModel("paper").value();
  OpWork work;
  CHECK(CostOf(paper, work).forward == Cost(1));
  work.is_convolution = true;
  CHECK(CostOf(paper, work).forward == Cost(10));
  CHECK(CostOf(ParseCostModel("unit").value(), work).forward == Cost(1));
}

const std::string kRow = R"({"name": "a", "description": "A card",
  "matrix_flops_per_second": 4e12, "half_matrix_flops_per_second": 8e12,
  "fp8_matrix_flops_per_second": 16e12, "vector_flops_per_second": 1e12,
  "bytes_per_second": 1e9, "launch_ns": 100, "memory_bytes": 1024,
  "host_link": {"name": "PCIe 4 x16", "bytes_per_second": 31.5e9}})";

std::string Document(const std::string& rows) { return R"({"devices": [)" + rows + "]}"; }

// Replaces a text in the row, which must contain it.
std::string With(const std::string& text, const std::string& other) {
  std::string row = kRow;
  const size_t at = row.find(text);
  REQUIRE(at != std::string::npos);
  return row.replace(at, text.size(), other);
}

TEST_CASE("devices: all figures of a row are read") {
  const Device device = ReadDevices(Document(kRow)).value().at(0);
  CHECK(device.name == "a");
  CHECK(device.description == "A card");
  CHECK(device.matrix_flops_per_second == 4e12);
  CHECK(device.half_matrix_flops_per_second == 8e12);
  CHECK(device.fp8_matrix_flops_per_second == 16e12);
  CHECK(device.vector_flops_per_second == 1e12);
  CHECK(device.bytes_per_second == 1e9);
  CHECK(device.launch_ns == 100);
  CHECK(device.memory == Bytes(1024));
  REQUIRE(device.host_link.has_value());
  CHECK(device.host_link->name == "PCIe 4 x16");
  CHECK(device.host_link->bytes_per_second == 31.5e9);
}

TEST_CASE("devices: the rate of FP8 and the link may be absent") {
  const std::string row = With(R"("fp8_matrix_flops_per_second": 16e12,)", "");
  CHECK_FALSE(ReadDevices(Document(row)).value().at(0).fp8_matrix_flops_per_second.has_value());
  const std::string unlinked = With(R"(,
  "host_link": {"name": "PCIe 4 x16", "bytes_per_second": 31.5e9})",
                                    "");
  CHECK_FALSE(ReadDevices(Document(unlinked)).value().at(0).host_link.has_value());
}

TEST_CASE("devices: what cuDNN asks about a GPU is read, and may be absent") {
  CHECK_FALSE(ReadDevices(Document(kRow)).value().at(0).cuda.has_value());
  const std::string cuda = R"("cuda": {"compute_capability": 90, "multiprocessors": 2,
    "shared_memory_per_block_bytes": 3, "l2_cache_bytes": 4, "clock_khz": 5,
    "memory_clock_khz": 6}, "launch_ns")";
  const auto properties =
      ReadDevices(Document(With("\"launch_ns\"", cuda))).value().at(0).cuda.value();
  CHECK(properties.compute_capability == 90);
  CHECK(properties.multiprocessors == 2);
  CHECK(properties.shared_memory_per_block == Bytes(3));
  CHECK(properties.l2_cache == Bytes(4));
  CHECK(properties.clock_khz == 5);
  CHECK(properties.memory_clock_khz == 6);
}

TEST_CASE("devices: a GPU that cuDNN is asked about is found among those that are described") {
  CHECK(FindCudaDevice("h100").value().name == "h100-80g");
  CHECK(FindCudaDevice("a100").value().name == "a100-80g");
  CHECK(FindCudaDevice("b200-180g").value().name == "b200-180g");
  CHECK_FALSE(FindDevice("a100").ok());  // Two names begin with this.
  const auto none = FindCudaDevice("t4-16g");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::kUsage);
  CHECK(none.error().notes.at(0) == "the presets are a100-80g, h100-80g, b200-180g");
}

TEST_CASE("devices: damage is this program's own fault, and says which figure it is") {
  const struct {
    std::string json;
    const char* part;
  } kRows[] = {
      {"{", "parse error"},
      {"{}", "devices"},
      {Document(kRow + "," + kRow), "two devices have the same name"},
      {Document(With("\"a\"", "\"\"")), "name is empty"},
      {Document(With("4e12", "0")), "matrix_flops_per_second is not a positive number"},
      {Document(With("8e12", "-8e12")), "half_matrix_flops_per_second is not a positive number"},
      {Document(With("16e12", "0")), "fp8_matrix_flops_per_second is not a positive number"},
      {Document(With("16e12", "\"fast\"")), "type must be number"},
      {Document(With("1024", "0")), "memory_bytes is not a positive number"},
      {Document(With("\"PCIe 4 x16\"", "\"\"")), "name is empty"},
      {Document(With("31.5e9", "0")), "bytes_per_second is not a positive number"},
      {Document(With(R"("launch_ns": 100, )", "")), "launch_ns"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.json);
    const auto devices = ReadDevices(row.json);
    REQUIRE_FALSE(devices.ok());
    CHECK(devices.error().code == ErrorCode::kInternal);
    CAPTURE(devices.error().message);
    CHECK(devices.error().message.find(row.part) != std::string::npos);
  }
}

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
        "workspace file \"w.json\": 1 fault: node \"a\" has no \"backward_workspace_bytes\"; "
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
