// What training needs of a device, as JSON: schemas/accounting.schema.json.
#pragma once

#include <string>
#include <vector>

#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/accounting.h"

namespace ckplan {

// Writes an array with an object for each line.
void WriteMemoryLines(const std::vector<MemoryLine>& lines, JsonLayout layout, JsonWriter* json);
// Writes the lines and their sums as an object. With `memory`, it says whether they fit there.
void WriteAccounting(const Accounting& accounting, const Budget& memory, JsonLayout layout,
                     JsonWriter* json);
std::string AccountingJson(const Accounting& accounting, const Budget& memory);

}  // namespace ckplan
