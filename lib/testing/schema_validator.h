// Validates JSON against a JSON Schema (draft-07) with the library valijson. Only
// schema_validator.cc includes that library, because it takes half a minute to compile.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ckplan {

class SchemaValidator {
 public:
  explicit SchemaValidator(std::string_view schema);  // Throws if the text isn't a schema.
  ~SchemaValidator();
  SchemaValidator(const SchemaValidator&) = delete;
  SchemaValidator& operator=(const SchemaValidator&) = delete;

  bool Accepts(const nlohmann::json& document) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ckplan
