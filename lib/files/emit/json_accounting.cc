#include "lib/files/emit/json_accounting.h"

#include <utility>
#include <vector>

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

}  // namespace ckplan
