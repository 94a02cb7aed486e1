// ckplan schema: the JSON Schemas that are compiled into the program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/ckplan/commands.h"
#include "lib/base/text.h"
#include "lib/files/emit/schemas.h"

namespace ckplan {
namespace {

std::vector<std::string_view> SchemaNames() {
  std::vector<std::string_view> names;
  for (const EmbeddedSchema& schema : EmbeddedSchemas()) names.push_back(schema.name);
  return names;
}

}  // namespace

void AddSchemaOptions(CommandLine& line, Options& options) {
  line.Positional("NAME", fmt::format("one of {}", fmt::join(SchemaNames(), ", ")), &options.name);
}

Result<ExitCode> RunSchema(const Options& options, const Screen& screen) {
  const EmbeddedSchema* const schema = FindSchema(options.name);
  if (schema == nullptr) {
    return MakeError(ErrorCode::kUsage,
                     "there is no schema " + NoneOf(options.name, SchemaNames()));
  }
  CKPLAN_RETURN_IF_ERROR(screen.Print(schema->text));
  return ExitCode::kOk;
}

}  // namespace ckplan
