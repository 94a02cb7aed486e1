// Writes and reads the fields of a request (lib/planning/plan/request_fields.h) as members of a
// JSON object, and writes constants and the device memory that training needs
// (schemas/accounting.schema.json).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/request_fields.h"

namespace ckplan {

// Writes an array with one object per line.
void WriteMemoryLines(const std::vector<MemoryLine>& lines, JsonLayout layout, JsonWriter* json);
// Writes the lines and their sums as an object and, if `memory` is given, whether they fit in it.
void WriteAccounting(const Accounting& accounting, const Budget& memory, JsonLayout layout,
                     JsonWriter* json);
std::string AccountingJson(const Accounting& accounting, const Budget& memory);

// Writes "constant_bytes": what no plan changes.
void WriteConstants(const ConstantMemory& constants, Bytes optimizer_state, JsonWriter* json);

// Writes the key and value, unless files omit the field.
void WriteField(const RequestField& field, const PlanRequest& request, JsonWriter* json);
void WriteField(std::string_view name, const PlanRequest& request, JsonWriter* json);

// Writes the fields that tables of plans show at `place`, except those with default values.
void WriteTableFields(FieldScope::InTables place, const PlanRequest& request, JsonWriter* json);

// Reads the field from `object`. A missing optional field leaves the request unchanged.
void ReadField(const RequestField& field, const JsonView& object, PlanRequest* request);

// Writes a setting such as {"knob": "B", "unit": "bytes", "value": 1048576}.
void WriteSetting(const KnobSetting& setting, JsonWriter* json);
KnobSetting ReadSetting(const JsonView& json);

}  // namespace ckplan
