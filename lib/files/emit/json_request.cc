#include "lib/files/emit/json_request.h"

#include <iterator>
#include <utility>
#include <vector>

#include "lib/files/emit/json_decisions.h"
#include "lib/planning/plan/knob.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

namespace {

void WriteMembers(const Accounting& accounting, const Budget& memory, JsonLayout layout,
                  JsonWriter* json) {
  json->Key("tensors");
  WriteMemoryLines(accounting.tensors, layout, json);
  json->Key("outside");
  WriteMemoryLines(accounting.outside, layout, json);
  json->Key("tensor_bytes").Amount(accounting.tensor_bytes());
  json->Key("outside_bytes").Amount(accounting.outside_bytes());
  json->Key("need_bytes").Amount(accounting.need());
  if (!memory.is_given()) return;
  json->Key("memory_bytes").Amount(memory.bytes);
  json->Key("fits").Boolean(accounting.need() <= memory.bytes);
}

}  // namespace

void WriteMemoryLines(const std::vector<MemoryLine>& lines, JsonLayout layout, JsonWriter* json) {
  json->BeginArray(layout);
  for (const MemoryLine& line : lines) {
    json->BeginObject(JsonLayout::kInline);
    json->Key("name").Text(line.name);
    json->Key("bytes").Amount(line.bytes);
    json->Key("least_bytes").Amount(line.least).Key("most_bytes").Amount(line.most);
    json->Key("kind").Text(NameOf(line.kind));
    json->Key("source").Text(line.source).End();
  }
  json->End();
}

void WriteAccounting(const Accounting& accounting, const Budget& memory, JsonLayout layout,
                     JsonWriter* json) {
  json->BeginObject(layout);
  WriteMembers(accounting, memory, layout, json);
  json->End();
}

std::string AccountingJson(const Accounting& accounting, const Budget& memory) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  WriteMembers(accounting, memory, JsonLayout::kLines, &json);
  json.End();
  return std::move(json).Finish();
}

namespace {

using InFile = RequestField::InFile;

// More than any graph needs with its gradients, but low enough that sums do not overflow.
constexpr int64_t kMaxBudget = 8 * kMaxTotalBytes.count();

class FieldWriter {
 public:
  FieldWriter(const PlanRequest& request, JsonWriter* writer) : request_(request), json_(*writer) {}

  void operator()(const WordsMember& member) const {
    json_.Text(member.words[member.get(request_)]);
  }
  void operator()(std::string PlanRequest::*member) const { json_.Text(request_.*member); }
  void operator()(int64_t PlanRequest::*member) const { json_.Integer(request_.*member); }
  void operator()(bool PlanRequest::*member) const { json_.Boolean(request_.*member); }
  void operator()(Budget PlanRequest::*member) const {
    json_.Amount((request_.*member).in_bytes());
  }
  void operator()(std::optional<Bytes> PlanRequest::*member) const {
    json_.Amount(request_.*member);
  }
  void operator()(std::optional<Link> PlanRequest::*member) const {
    const Link& link = *(request_.*member);
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("link").Text(link.name);
    json_.Key("out_bytes_per_second").Integer(link.out_bytes_per_second);
    json_.Key("in_bytes_per_second").Integer(link.in_bytes_per_second);
    json_.Key("latency_ns").Integer(link.latency_ns);
    json_.Key("duplex").Text(NameOf(link.duplex));
    json_.End();
  }
  void operator()(DimSizes PlanRequest::*member) const {
    json_.BeginObject(JsonLayout::kInline);
    for (const auto& [name, size] : request_.*member) json_.Key(name).Integer(size);
    json_.End();
  }
  void operator()(NamePatterns PlanRequest::*member) const {
    json_.BeginArray(JsonLayout::kInline);
    for (const std::string& pattern : request_.*member) json_.Text(pattern);
    json_.End();
  }
  void operator()(std::optional<PipelineStage> PlanRequest::*member) const {
    const PipelineStage& stage = *(request_.*member);
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("stages").Integer(stage.stages).Key("index").Integer(stage.index).End();
  }
  void operator()(std::optional<Sharding> PlanRequest::*member) const {
    const Sharding& sharding = *(request_.*member);
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("system").Text(kShardingSystems[static_cast<size_t>(sharding.system)]);
    json_.Key("devices").Integer(sharding.devices).End();
  }
  void operator()(std::optional<Decisions> PlanRequest::*member) const {
    WriteDecisions(*(request_.*member), &json_);
  }
  void operator()(std::optional<KnobSetting> PlanRequest::*member) const {
    WriteSetting(*(request_.*member), &json_);
  }
  void operator()(InputShapes PlanRequest::*member) const {
    json_.BeginObject(JsonLayout::kInline);
    for (const auto& [input, shape] : request_.*member) {
      json_.Key(input).BeginArray(JsonLayout::kInline);
      for (const int64_t size : shape) json_.Integer(size);
      json_.End();
    }
    json_.End();
  }

 private:
  const PlanRequest& request_;
  JsonWriter& json_;
};

class FieldReader {
 public:
  FieldReader(const JsonView& value, PlanRequest* request) : value_(value), request_(*request) {}

  void operator()(const WordsMember& member) const {
    member.set(&request_, value_.Choice({member.words.begin(), member.words.end()}));
  }
  void operator()(std::string PlanRequest::*member) const {
    // A plan says that workspaces came from a file, but not from which one.
    if (member == &PlanRequest::workspaces) value_.Choice({"file"});
    request_.*member = value_.Text();
  }
  void operator()(int64_t PlanRequest::*member) const {
    request_.*member = value_.Integer(1, kMaxTotalBytes.count());
  }
  void operator()(bool PlanRequest::*member) const { request_.*member = value_.Boolean(); }
  void operator()(Budget PlanRequest::*member) const {
    if (!value_.is_null()) request_.*member = Budget::Of(Bytes(value_.Integer(0, kMaxBudget)));
  }
  void operator()(std::optional<Bytes> PlanRequest::*member) const {
    if (!value_.is_null()) request_.*member = Bytes(value_.Integer(0, kMaxBudget));
  }
  void operator()(std::optional<Link> PlanRequest::*member) const {
    Link link;
    link.name = value_["link"].Text();
    link.out_bytes_per_second = value_["out_bytes_per_second"].Integer(1, kMaxLinkRate);
    link.in_bytes_per_second = value_["in_bytes_per_second"].Integer(1, kMaxLinkRate);
    link.latency_ns = value_["latency_ns"].Integer(0, kMaxLatency);
    link.duplex = static_cast<Duplex>(
        value_["duplex"].Choice({std::begin(kDuplexWords), std::end(kDuplexWords)}));
    request_.*member = std::move(link);
  }
  void operator()(DimSizes PlanRequest::*member) const {
    value_.ForEachMember([&](const std::string& name, const JsonView& size) {
      (request_.*member).emplace(name, size.Integer());
    });
  }
  void operator()(NamePatterns PlanRequest::*member) const {
    if (value_.is_array() && value_.size() == 0) value_.Fault("needs at least one pattern");
    for (size_t i = 0; i < value_.size(); ++i) {
      (request_.*member).push_back(value_.at(i).Text());
    }
  }
  void operator()(std::optional<PipelineStage> PlanRequest::*member) const {
    const int64_t stages = value_["stages"].Integer(1, kMaxStages);
    request_.*member = PipelineStage{stages, value_["index"].Integer(0, stages - 1)};
  }
  void operator()(std::optional<Sharding> PlanRequest::*member) const {
    const size_t system =
        value_["system"].Choice({std::begin(kShardingSystems), std::end(kShardingSystems)});
    request_.*member =
        Sharding{static_cast<ShardingSystem>(system),
                 value_["devices"].Integer(kMinShardingDevices, kMaxShardingDevices)};
  }
  void operator()(std::optional<Decisions> PlanRequest::*member) const {
    request_.*member = ReadDecisions(value_);
  }
  void operator()(std::optional<KnobSetting> PlanRequest::*member) const {
    request_.*member = ReadSetting(value_);
  }
  void operator()(InputShapes PlanRequest::*member) const {
    value_.ForEachMember([&](const std::string& input, const JsonView& shape) {
      std::vector<int64_t>& sizes = (request_.*member)[input];
      for (size_t i = 0; i < shape.size(); ++i) sizes.push_back(shape.at(i).Integer());
    });
  }

 private:
  const JsonView& value_;
  PlanRequest& request_;
};

constexpr std::string_view kBytesUnit = "bytes";
constexpr std::string_view kPlainUnit = "1";

}  // namespace

void WriteSetting(const KnobSetting& setting, JsonWriter* json) {
  json->BeginObject(JsonLayout::kInline);
  json->Key("knob").Text(setting.knob);
  json->Key("unit").Text(IsInBytes(setting.knob) ? kBytesUnit : kPlainUnit);
  json->Key("value").Integer(setting.value);
  json->End();
}

KnobSetting ReadSetting(const JsonView& json) {
  const std::vector<std::string_view> names = KnobNames();
  const std::string knob(names[json["knob"].Choice(names)]);
  json["unit"].Choice({IsInBytes(knob) ? kBytesUnit : kPlainUnit});
  return {knob, json["value"].Integer(0, kMaxBudget)};
}

void WriteConstants(const ConstantMemory& constants, Bytes optimizer_state, JsonWriter* json) {
  json->Key("constant_bytes").BeginObject(JsonLayout::kInline);
  json->Key("parameters").Amount(constants.parameters);
  json->Key("parameter_gradients").Amount(constants.parameter_gradients);
  json->Key("optimizer_state").Amount(optimizer_state);
  json->Key("inputs").Amount(constants.inputs);
  if (constants.unsharded > Bytes(0)) {
    json->Key("unsharded").Amount(constants.unsharded);
  }
  json->End();
}

void WriteField(const RequestField& field, const PlanRequest& request, JsonWriter* json) {
  if (field.in_file == InFile::kNever) return;
  if (field.in_file == InFile::kUnlessDefault && IsDefault(field, request)) return;
  if (field.in_file == InFile::kWithOffload && !request.offload) return;
  json->Key(field.key);
  std::visit(FieldWriter(request, json), field.member);
}

void WriteField(std::string_view name, const PlanRequest& request, JsonWriter* json) {
  WriteField(FieldOf(name), request, json);
}

void WriteTableFields(FieldScope::InTables place, const PlanRequest& request, JsonWriter* json) {
  for (const RequestField& field : RequestFields()) {
    if (field.scope.in_tables == place) WriteField(field, request, json);
  }
}

void ReadField(const RequestField& field, const JsonView& object, PlanRequest* request) {
  if (field.in_file == InFile::kNever) return;
  if (field.in_file != InFile::kRequired && !object.has(field.key)) return;
  std::visit(FieldReader(object[field.key], request), field.member);
}

}  // namespace ckplan
