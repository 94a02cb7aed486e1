// Writes and reads the fields of a request as members of a JSON object, by the table of fields
// (lib/planning/plan/request_fields.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/request_fields.h"

namespace ckplan {

// What training needs of a device, as JSON: schemas/accounting.schema.json.

// Writes an array with an object for each line.
void WriteMemoryLines(const std::vector<MemoryLine>& lines, JsonLayout layout, JsonWriter* json);
// Writes the lines and their sums as an object. With `memory`, it says whether they fit there.
void WriteAccounting(const Accounting& accounting, const Budget& memory, JsonLayout layout,
                     JsonWriter* json);
std::string AccountingJson(const Accounting& accounting, const Budget& memory);

// Writes key and value; nothing if files leave the field out.
void WriteField(const RequestField& field, const PlanRequest& request, JsonWriter* json);
// Writes the field with this name.
void WriteField(std::string_view name, const PlanRequest& request, JsonWriter* json);

// Writes the fields that tables of many plans show in this place, where they are not the default.
void WriteTableFields(FieldScope::InTables place, const PlanRequest& request, JsonWriter* json);

// Reads the field from its object; an absent optional field leaves the request as it is.
void ReadField(const RequestField& field, const JsonView& object, PlanRequest* request);

// Writes a setting such as {"knob": "B", "unit": "bytes", "value": 1048576}.
void WriteSetting(const KnobSetting& setting, JsonWriter* json);
KnobSetting ReadSetting(const JsonView& json);

}  // namespace ckplan
