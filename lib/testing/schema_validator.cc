#include "lib/testing/schema_validator.h"

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace ckplan {

struct SchemaValidator::State {
  valijson::Schema schema;
};

SchemaValidator::SchemaValidator(std::string_view schema) : state_(std::make_unique<State>()) {
  const auto document = nlohmann::json::parse(schema);
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(document), state_->schema);
}

SchemaValidator::~SchemaValidator() = default;

bool SchemaValidator::Accepts(const nlohmann::json& document) const {
  valijson::Validator validator;
  return validator.validate(state_->schema, valijson::adapters::NlohmannJsonAdapter(document),
                            nullptr);
}

}  // namespace ckplan
