// ckplan devices: the presets in lib/problem/cost/devices.json for --cost flops:DEVICE, --memory
// and --offload.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/cost/link.h"

namespace ckplan {
namespace {

// Rates of devices are whole numbers below 2^53.
int64_t RoundRate(double number) { return std::llround(number); }

void WriteHostLink(const Device& device, JsonWriter* json) {
  json->Key("host_link");
  if (!device.host_link) {
    json->Null();
    return;
  }
  json->BeginObject(JsonLayout::kInline);
  json->Key("name").Text(device.host_link->name);
  json->Key("bytes_per_second").Integer(RoundRate(device.host_link->bytes_per_second)).End();
}

void WriteCuda(const Device& device, JsonWriter* json) {
  json->Key("cuda");
  if (!device.cuda) {
    json->Null();
    return;
  }
  const CudaProperties& cuda = *device.cuda;
  json->BeginObject(JsonLayout::kInline);
  json->Key("compute_capability").Integer(cuda.compute_capability);
  json->Key("multiprocessors").Integer(cuda.multiprocessors);
  json->Key("shared_memory_per_block_bytes").Amount(cuda.shared_memory_per_block);
  json->Key("l2_cache_bytes").Amount(cuda.l2_cache);
  json->Key("clock_khz").Integer(cuda.clock_khz);
  json->Key("memory_clock_khz").Integer(cuda.memory_clock_khz).End();
}

void WriteLinks(const std::vector<LinkPreset>& links, JsonWriter* json) {
  json->Key("links").BeginArray(JsonLayout::kLines);
  for (const LinkPreset& link : links) {
    json->BeginObject(JsonLayout::kLines);
    json->Key("name").Text(link.name);
    json->Key("description").Text(link.description);
    json->Key("bytes_per_second").Integer(RoundRate(link.bytes_per_second));
    json->Key("planned_bytes_per_second").Integer(link.Default().out_bytes_per_second);
    json->Key("latency_ns").Integer(link.latency_ns);
    json->End();
  }
  json->End();
}

// Device memory beyond tensors; a CPU needs none.
void WriteOutside(const Device& device, JsonWriter* json) {
  const std::vector<MemoryLine> none;
  const bool is_cpu = device.name == "cpu";
  json->Key("outside");
  WriteMemoryLines(is_cpu ? none : OutsideOf(device.name, device.memory), JsonLayout::kLines, json);
}

std::string DevicesJson(const std::vector<Device>& rows, const std::vector<LinkPreset>& links) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("default").Text(kDefaultDevice);
  json.Key("devices").BeginArray(JsonLayout::kLines);
  for (const Device& device : rows) {
    json.BeginObject(JsonLayout::kLines);
    json.Key("name").Text(device.name);
    json.Key("description").Text(device.description);
    json.Key("matrix_flops_per_second").Integer(RoundRate(device.matrix_flops_per_second));
    json.Key("half_matrix_flops_per_second")
        .Integer(RoundRate(device.half_matrix_flops_per_second));
    json.Key("fp8_matrix_flops_per_second");
    if (device.fp8_matrix_flops_per_second) {
      json.Integer(RoundRate(*device.fp8_matrix_flops_per_second));
    } else {
      json.Null();
    }
    json.Key("vector_flops_per_second").Integer(RoundRate(device.vector_flops_per_second));
    json.Key("bytes_per_second").Integer(RoundRate(device.bytes_per_second));
    json.Key("launch_ns").Integer(RoundRate(device.launch_ns));
    json.Key("memory_bytes").Amount(device.memory);
    WriteHostLink(device, &json);
    WriteCuda(device, &json);
    WriteOutside(device, &json);
    json.End();
  }
  json.End();
  WriteLinks(links, &json);
  json.End();
  return std::move(json).Finish();
}

std::string Tera(double rate) { return fmt::format("{:g}", rate / 1e12); }
std::string Giga(double rate) { return fmt::format("{:g}", rate / 1e9); }

TextTable DevicesTable(const std::vector<Device>& rows) {
  TextTable table;
  table.columns = {{"device"},        {"memory", true},
                   {"GB/s", true},    {"TFLOPS", true},
                   {"16 bits", true}, {"FP8", true},
                   {"vector", true},  {"host link"},
                   {"GB/s", true},    {"what it is", false, TableColumn::Fit::kWrap}};
  for (const Device& device : rows) {
    table.rows.push_back(
        {device.name, HumanBytes(device.memory), Giga(device.bytes_per_second),
         Tera(device.matrix_flops_per_second), Tera(device.half_matrix_flops_per_second),
         device.fp8_matrix_flops_per_second ? Tera(*device.fp8_matrix_flops_per_second) : "-",
         Tera(device.vector_flops_per_second), device.host_link ? device.host_link->name : "-",
         device.host_link ? Giga(device.host_link->bytes_per_second) : "-", device.description});
  }
  return table;
}

// Numbers whole, with their units in the names of the columns.
std::string DevicesCsv(const std::vector<Device>& rows) {
  TextTable table;
  for (const char* const name :
       {"device", "matrix_flops_per_second", "half_matrix_flops_per_second",
        "vector_flops_per_second", "bytes_per_second", "launch_ns", "memory_bytes",
        "fp8_matrix_flops_per_second", "host_link", "host_link_bytes_per_second", "description"}) {
    table.columns.push_back({name});
  }
  for (const Device& device : rows) {
    std::vector<std::string> cells = {device.name};
    for (const double number :
         {device.matrix_flops_per_second, device.half_matrix_flops_per_second,
          device.vector_flops_per_second, device.bytes_per_second, device.launch_ns}) {
      cells.push_back(std::to_string(RoundRate(number)));
    }
    cells.push_back(std::to_string(device.memory.count()));
    const std::optional<double>& fp8 = device.fp8_matrix_flops_per_second;
    cells.push_back(fp8 ? std::to_string(RoundRate(*fp8)) : "");
    const std::optional<HostLink>& link = device.host_link;
    cells.push_back(link ? link->name : "");
    cells.push_back(link ? std::to_string(RoundRate(link->bytes_per_second)) : "");
    cells.push_back(device.description);
    table.rows.push_back(std::move(cells));
  }
  return table.Csv();
}

TextTable LinksTable(const std::vector<LinkPreset>& links) {
  constexpr double kMicrosecond = 1000;
  TextTable table;
  table.columns = {{"link"},
                   {"GB/s", true},
                   {"planned", true},
                   {"us a copy", true},
                   {"what it is", false, TableColumn::Fit::kWrap}};
  for (const LinkPreset& link : links) {
    table.rows.push_back({link.name, Giga(link.bytes_per_second),
                          Giga(static_cast<double>(link.Default().out_bytes_per_second)),
                          fmt::format("{:g}", static_cast<double>(link.latency_ns) / kMicrosecond),
                          link.description});
  }
  return table;
}

std::string LinksText(const std::vector<LinkPreset>& links, const Terminal& terminal) {
  return fmt::format(
      "\nLinks to the host, for --offload\n{}\nGB/s: nominal, in each direction. planned: the {} % "
      "of it that copies usually reach, less for\nc2c, which shares the device's memory; --offload "
      "LINK:OUT/IN sets other values. us a copy: the\nfixed cost of one copy.\n",
      LinksTable(links).Text(0, terminal.table_width()), kDefaultLinkPercent);
}

std::string DevicesText(const std::vector<Device>& rows, const std::vector<LinkPreset>& links,
                        const Terminal& terminal) {
  return DevicesTable(rows).Text(0, terminal.table_width()) +
         fmt::format(
             "\nTFLOPS: dense matrix products of 32-bit, 16-bit and FP8 tensors; vector: all other "
             "operations.\nGB/s: the device's memory, and its link to the host in each "
             "direction. FP8 and the link don't\naffect costs. The default is {}.\n",
             kDefaultDevice) +
         LinksText(links, terminal);
}

}  // namespace

void AddDevicesOptions(CommandLine& line, Options& options) {
  line.OptionalPositional("DEVICE", "name of a preset, or an unambiguous prefix", &options.name);
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "format of the list", &options.format);
}

Result<ExitCode> RunDevices(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(std::vector<Device> rows, ListDevices());
  if (!options.name.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(const Device one, FindDevice(options.name));
    std::erase_if(rows, [&](const Device& device) { return device.name != one.name; });
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<LinkPreset> links, ListLinks());
  const std::string text = options.format == "json" ? DevicesJson(rows, links)
                           : options.format == "md"
                               ? DevicesTable(rows).Markdown() + "\n" + LinksTable(links).Markdown()
                           : options.format == "csv" ? DevicesCsv(rows)
                                                     : DevicesText(rows, links, screen.out);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ExitCode::kOk;
}

}  // namespace ckplan
