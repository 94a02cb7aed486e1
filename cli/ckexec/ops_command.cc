// ckexec ops: lists the operators that a backend can run.
#include <span>

#include "cli/ckexec/backends.h"
#include "cli/ckexec/commands.h"
#include "cli/common/text_table.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

std::string OpsJson(const std::string& backend, std::span<const OpSupport> operators) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("backend").Text(backend);
  json.Key("operators").BeginArray(JsonLayout::kLines);
  for (const OpSupport& op : operators) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("operator").Text(op.type);
    json.Key("has_gradient").Boolean(op.has_gradient);
    json.Key("limits").Text(op.limits);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

TextTable OpsTable(std::span<const OpSupport> operators) {
  TextTable table;
  table.columns = {{"operator"}, {"gradient"}, {"not supported", false, TableColumn::Fit::kWrap}};
  for (const OpSupport& op : operators) {
    table.rows.push_back({op.type, op.has_gradient ? "yes" : "-", op.limits});
  }
  return table;
}

}  // namespace

void AddOpsOptions(CommandLine& line, ExecOptions& options) {
  AddBackendChoice(line, "backend whose operators are listed", &options.backend);
  line.Choice("-f,--format", {"text", "json", "md"}, "format of the output", &options.format);
  AddExecScreenOptions(line, options);
}

Result<ExitCode> RunOps(const ExecOptions& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<OpSupport> operators, OperatorsOf(options.backend));
  CKPLAN_RETURN_IF_ERROR(screen.Print(options.format == "json" ? OpsJson(options.backend, operators)
                                      : options.format == "md"
                                          ? OpsTable(operators).Markdown()
                                          : OpsTable(operators).Text(0, screen.out.table_width())));
  return ExitCode::kOk;
}

}  // namespace ckplan
