// ckexec ops: what a backend can run.
#include "cli/ckexec/commands.h"
#include "cli/ckexec/session.h"
#include "cli/common/text_table.h"
#include "lib/emit/json_writer.h"

namespace ckplan {
namespace {

std::string OpsJson(const Backend& backend) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("backend").Text(backend.name());
  json.Key("operators").BeginArray(JsonLayout::kLines);
  for (const OpSupport& op : backend.Operators()) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("operator").Text(op.type);
    json.Key("has_gradient").Boolean(op.has_gradient);
    json.Key("limits").Text(op.limits);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

TextTable OpsTable(const Backend& backend) {
  TextTable table;
  table.columns = {{"operator"}, {"gradient"}, {"not supported"}};
  for (const OpSupport& op : backend.Operators()) {
    table.rows.push_back({op.type, op.has_gradient ? "yes" : "-", op.limits});
  }
  return table;
}

}  // namespace

void AddOpsOptions(CommandLine& line, ExecOptions& options) {
  line.Choice("--backend", {"cpu", "cuda"}, "whose operators", &options.backend);
  line.Choice("-f,--format", {"text", "json", "md"}, "of what is printed", &options.format);
  AddExecScreenOptions(line, options);
}

Result<ExitCode> RunOps(const ExecOptions& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(options));
  CKPLAN_RETURN_IF_ERROR(screen.Print(options.format == "json" ? OpsJson(*backend)
                                      : options.format == "md" ? OpsTable(*backend).Markdown()
                                                               : OpsTable(*backend).Text()));
  return ExitCode::kOk;
}

}  // namespace ckplan
