// Writes and reads the fields of a request as members of a JSON object, by the table of fields
// (lib/plan/request_fields.h).
#pragma once

#include <array>
#include <string_view>

#include "lib/emit/json_reader.h"
#include "lib/emit/json_writer.h"
#include "lib/plan/request_fields.h"

namespace ckplan {

// Writes key and value; nothing if files leave the field out.
void WriteField(const RequestField& field, const PlanRequest& request, JsonWriter* json);
// Writes the field with this name.
void WriteField(std::string_view name, const PlanRequest& request, JsonWriter* json);

// The fields that select nodes, tensors and parameters of a model. Plans of one model may differ in
// them, besides sizes and algorithms. Absent ones select nothing.
inline constexpr std::array<std::string_view, 4> kPatternFields = {"keep", "recompute",
                                                                   "never_rerun", "freeze"};
void WritePatterns(const PlanRequest& request, JsonWriter* json);

// The fields that say how gradients are counted, and for which of several devices the request is.
// Without them, a single device has everything.
inline constexpr std::array<std::string_view, 6> kCountingFields = {
    "gradients", "sharding", "pipeline", "micro_batches", "schedule", "stage_cuts"};
void WriteCounting(const PlanRequest& request, JsonWriter* json);

// Reads the field from its object; an absent optional field leaves the request as it is.
void ReadField(const RequestField& field, const JsonView& object, PlanRequest* request);

// Writes a setting such as {"knob": "B", "unit": "bytes", "value": 1048576}.
void WriteSetting(const KnobSetting& setting, JsonWriter* json);
KnobSetting ReadSetting(const JsonView& json);

}  // namespace ckplan
