// One field of a request as a member of a JSON object, by the table of fields (lib/plan/request.h).
#pragma once

#include <array>
#include <string_view>

#include "lib/emit/json_reader.h"
#include "lib/emit/json_writer.h"
#include "lib/plan/request.h"

namespace ckplan {

// Key and value; nothing where files leave the field out.
void WriteField(const RequestField& field, const PlanRequest& request, JsonWriter* json);
// Writes the field that has this name.
void WriteField(std::string_view name, const PlanRequest& request, JsonWriter* json);

// The fields that choose among a model's nodes, tensors and parameters: what plans of one model may
// differ in beside sizes and algorithms. Absent ones choose nothing.
inline constexpr std::array<std::string_view, 4> kPatternFields = {"keep", "recompute",
                                                                   "never_rerun", "freeze"};
void WritePatterns(const PlanRequest& request, JsonWriter* json);

// The fields that say how gradients are counted, and which of several devices a request is for;
// absent ones for one that has all.
inline constexpr std::array<std::string_view, 6> kCountingFields = {
    "gradients", "sharding", "pipeline", "micro_batches", "schedule", "stage_cuts"};
void WriteCounting(const PlanRequest& request, JsonWriter* json);

// Reads the field from the object that has it; an optional one that is absent stays as it is.
void ReadField(const RequestField& field, const JsonView& object, PlanRequest* request);

// {"knob": "B", "unit": "bytes", "value": 1048576}
void WriteSetting(const KnobSetting& setting, JsonWriter* json);
KnobSetting ReadSetting(const JsonView& json);

}  // namespace ckplan
