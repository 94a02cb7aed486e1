// The JSON Schemas (draft-07) of the files that ckplan reads and writes, compiled into the program
// from schemas/NAME.schema.json.
#pragma once

#include <span>
#include <string_view>

namespace ckplan {

struct EmbeddedSchema {
  std::string_view name;  // "plan" of schemas/plan.schema.json
  std::string_view text;
};

// In alphabetical order.
std::span<const EmbeddedSchema> EmbeddedSchemas();

// Null if there is none of that name.
const EmbeddedSchema* FindSchema(std::string_view name);

}  // namespace ckplan
