#include "lib/problem/cost/devices.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {
namespace {

const std::string kRow = R"({"name": "a", "description": "A card",
  "matrix_flops_per_second": 4e12, "half_matrix_flops_per_second": 8e12,
  "fp8_matrix_flops_per_second": 16e12, "vector_flops_per_second": 1e12,
  "bytes_per_second": 1e9, "launch_ns": 100, "memory_bytes": 1024,
  "host_link": {"name": "PCIe 4 x16", "bytes_per_second": 31.5e9}})";

std::string Document(const std::string& rows) { return R"({"devices": [)" + rows + "]}"; }

// The row with the text, which must be in it, replaced.
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
  CHECK_FALSE(FindDevice("a100").ok());  // There are two that begin so.
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
      {Document(kRow + "," + kRow), "two devices have one name"},
      {Document(With("\"a\"", "\"\"")), "name is empty"},
      {Document(With("4e12", "0")), "matrix_flops_per_second is no rate"},
      {Document(With("8e12", "-8e12")), "half_matrix_flops_per_second is no rate"},
      {Document(With("16e12", "0")), "fp8_matrix_flops_per_second is no rate"},
      {Document(With("16e12", "\"fast\"")), "type must be number"},
      {Document(With("1024", "0")), "memory_bytes is no rate"},
      {Document(With("\"PCIe 4 x16\"", "\"\"")), "name is empty"},
      {Document(With("31.5e9", "0")), "bytes_per_second is no rate"},
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

}  // namespace
}  // namespace ckplan
