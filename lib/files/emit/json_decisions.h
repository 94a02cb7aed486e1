// decisions.json: a user's own decisions (lib/planning/plan/decisions.h) in one of these forms:
//
//   {"kept": ["relu1", "relu2"]}
//   {"checkpoints": ["relu2", "relu4"]}
//   {"mirror_counts": {"conv1": 2, "relu1": 1}}
//   {"lower_sets": [["conv1", "relu1"], ["conv2", "relu2"]]}
//   {"order": [["f", "conv1"], ["f", "relu1"], ["loss"], ["b", "relu1"], ["b", "conv1"]]}
//
// See schemas/decisions.schema.json. A number instead of a name is the id of the node or tensor as
// `ckplan graph` shows it. A plan file works, too: it gives the order of its steps.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/decisions.h"

namespace ckplan {

// `where` names the text in messages. kInvalidInput lists all faults with their places.
Result<Decisions> ReadDecisionsJson(std::string_view text, const std::string& where);

// Writes the decisions as a value in another document.
void WriteDecisions(const Decisions& decisions, JsonWriter* json);
Decisions ReadDecisions(const JsonView& json);

}  // namespace ckplan
