// The commands about ckplan itself: algorithms, schemas, shell completion and manual pages.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/common/self_description.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/files/emit/schemas.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

std::string_view UnitOf(const KnobInfo& knob) { return knob.is_bytes ? "bytes" : "1"; }

void WriteKnob(const KnobInfo* knob, JsonWriter* json) {
  if (knob == nullptr) {
    json->Null();
    return;
  }
  json->BeginObject(JsonLayout::kInline);
  json->Key("name").Text(knob->name);
  json->Key("unit").Text(UnitOf(*knob));
  json->Key("meaning").Text(knob->meaning);
  json->Key("range").Text(knob->range);
  json->End();
}

std::string AlgosJson() {
  JsonWriter json;
  json.BeginArray(JsonLayout::kLines);
  for (const SolverInfo* const listed : ListedAlgorithms()) {
    const SolverInfo& info = *listed;
    json.BeginObject(JsonLayout::kLines);
    json.Key("name").Text(info.name);
    json.Key("aliases").BeginArray(JsonLayout::kInline);
    for (const std::string_view alias : AliasesOf(info.name)) json.Text(alias);
    json.End();
    json.Key("summary").Text(info.summary);
    json.Key("paper").Text(info.paper);
    json.Key("guarantee").Text(NameOf(info.guarantee));
    json.Key("graphs").Text(NameOf(info.graphs));
    json.Key("takes_objective").Boolean(info.takes_objective);
    json.Key("needs_link").Boolean(NeedsLink(info));
    json.Key("knob");
    WriteKnob(InfoOf(info.knob), &json);
    json.Key("is_default").Boolean(info.name == kDefaultAlgorithm);
    json.End();
  }
  json.End();
  return std::move(json).Finish();
}

TextTable AlgosTable(bool has_papers) {
  TextTable table;
  table.columns = {{"algorithm"},
                   {"guarantee", false, TableColumn::Fit::kWhole, 2},
                   {"graphs", false, TableColumn::Fit::kWhole, 1},
                   {"what it does", false, TableColumn::Fit::kWrap}};
  if (has_papers) {
    for (const char* const name : {"paper", "knob", "unit", "range", "needs_link"}) {
      table.columns.push_back({name});
    }
  }
  for (const SolverInfo* const listed : ListedAlgorithms()) {
    const SolverInfo& info = *listed;
    table.rows.push_back({std::string(info.name), std::string(NameOf(info.guarantee)),
                          std::string(NameOf(info.graphs)), std::string(info.summary)});
    if (!has_papers) continue;
    table.rows.back().emplace_back(info.paper);
    const KnobInfo* const knob = InfoOf(info.knob);
    if (knob == nullptr) {
      table.rows.back().insert(table.rows.back().end(), 3, "");
    } else {
      for (const std::string_view cell : {knob->name, UnitOf(*knob), knob->range}) {
        table.rows.back().emplace_back(cell);
      }
    }
    table.rows.back().emplace_back(NeedsLink(info) ? "true" : "false");
  }
  return table;
}

TextTable KnobTable() {
  TextTable table;
  table.columns = {{"algorithm"},
                   {"knob"},
                   {"setting", false, TableColumn::Fit::kWrap},
                   {"meaning", false, TableColumn::Fit::kWrap}};
  for (const SolverInfo* const info : ListedAlgorithms()) {
    const KnobInfo* const knob = InfoOf(info->knob);
    if (knob == nullptr) continue;
    table.rows.push_back({std::string(info->name), std::string(knob->name),
                          fmt::format("{}{}", knob->is_bytes ? "bytes, " : "", knob->range),
                          std::string(knob->meaning)});
  }
  return table;
}

std::string AlgosText(const Terminal& terminal) {
  constexpr size_t kIndent = 4;
  const size_t width = terminal.table_width();
  std::string text = AlgosTable(/*has_papers=*/false).Text(0, width);
  text += "\nKnobs, which --knob NAME=VALUE sets; a budget on the peak searches for the setting\n";
  text += KnobTable().Text(2, width);
  text += "\nThese algorithms need a link to the host (--offload)\n";
  for (const SolverInfo* const info : ListedAlgorithms()) {
    if (NeedsLink(*info)) text += fmt::format("  {}\n", info->name);
  }
  text += "\nPapers\n";
  for (const SolverInfo& info : AllSolvers()) {
    if (info.paper == "none") continue;
    text += fmt::format("  {}\n", info.name);
    for (const std::string& line : Wrapped(info.paper, width - kIndent)) {
      text += fmt::format("{:{}}{}\n", "", kIndent, line);
    }
  }
  text += "\nAlso known as\n";
  for (const SolverInfo& info : AllSolvers()) {
    const std::vector<std::string_view> aliases = AliasesOf(info.name);
    if (aliases.empty()) continue;
    text += fmt::format("  {:<19} {}\n", info.name, fmt::join(aliases, ", "));
  }
  return text + "\nThe default is " + std::string(kDefaultAlgorithm) + ".\n";
}

}  // namespace

void AddAlgosOptions(CommandLine& line, Options& options) {
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "format of the list", &options.format);
}

Result<ExitCode> RunAlgos(const Options& options, const Screen& screen) {
  const std::string text = options.format == "json"  ? AlgosJson()
                           : options.format == "md"  ? AlgosTable(true).Markdown()
                           : options.format == "csv" ? AlgosTable(true).Csv()
                                                     : AlgosText(screen.out);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ExitCode::kOk;
}

// ckplan completion and ckplan man, generated from the table of commands.

void AddCompletionOptions(CommandLine& line, Options& options) {
  AddShellName(line, &options.name);
}

Result<ExitCode> RunCompletion(const Options& options, const Screen& screen) {
  return PrintCompletion(DescribeProgram(), options.name, screen);
}

void AddManOptions(CommandLine& line, Options& options) { AddCommandName(line, &options.name); }

Result<ExitCode> RunMan(const Options& options, const Screen& screen) {
  return PrintManPage(DescribeProgram(), options.name, screen);
}

// ckplan schema: the JSON Schemas that are compiled into the program.

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
                     "there is no schema " + DescribeUnknownName(options.name, SchemaNames()));
  }
  CKPLAN_RETURN_IF_ERROR(screen.Print(schema->text));
  return ExitCode::kOk;
}

}  // namespace ckplan
