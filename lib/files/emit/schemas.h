// The JSON Schemas (draft-07) of the files that ckplan reads and writes, compiled into the program
// from schemas/NAME.schema.json.
#pragma once

#include <span>
#include <string_view>

namespace ckplan {

struct EmbeddedSchema {
  std::string_view name;  // "plan" for schemas/plan.schema.json.
  std::string_view text;
};

// In alphabetical order.
std::span<const EmbeddedSchema> EmbeddedSchemas();

// Returns null if there is no schema with that name.
const EmbeddedSchema* FindSchema(std::string_view name);

}  // namespace ckplan
