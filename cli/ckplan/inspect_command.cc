// ckplan inspect: shows what a model consists of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/fail_on.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/ckplan/suggestions.h"
#include "cli/common/command_line.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/findings.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/problem/parallel/division.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

std::string CostText(Cost cost, const std::string& unit) {
  if (unit != "ns") return std::to_string(cost.count());
  return fmt::format("{:.3f} ms", static_cast<double>(cost.count()) / kNsPerMs);
}

std::string Share(Cost part, Cost whole) {
  const double ratio =
      whole == Cost(0) ? 0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
  return fmt::format("{:.1f}%", ratio * 100);
}

std::string OpsetsText(const ModelIdentity& model) {
  std::string text;
  for (const auto& [domain, version] : model.opsets) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", domain.empty() ? "" : domain + " ",
                        version);
  }
  return text.empty() ? "-" : text;
}

std::string DimsText(const PlanRequest& request) {
  const std::vector<std::string> texts = ModelTexts(request);
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, " "));
}

// "activation type"
std::string TitleOf(const RequestField& field) {
  std::string title(field.name);
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

// One row for each figure and one column for each model.
TextTable FiguresTable(const std::vector<Inspection>& inspections) {
  TextTable table;
  table.columns = {{""}};
  for (const Inspection& one : inspections) table.columns.push_back({one.model.name, true});
  const auto add = [&](std::string name,
                       const std::function<std::string(const Inspection&)>& cell) {
    table.rows.push_back({std::move(name)});
    for (const Inspection& one : inspections) table.rows.back().push_back(cell(one));
  };
  using One = const Inspection&;
  add("opsets", [](One i) { return OpsetsText(i.model); });
  add("dimensions", [](One i) { return DimsText(i.request); });
  add("nodes", [](One i) { return std::to_string(i.node_count); });
  add("tensors", [](One i) { return std::to_string(i.tensor_count); });
  add("activations", [](One i) { return HumanBytes(i.activations); });
  add("statistics", [](One i) { return HumanBytes(i.statistics); });
  add("saved for backward", [](One i) { return HumanBytes(i.saved_for_backward); });
  add("peak, keeping all", [](One i) { return HumanBytes(i.keep_all_peak); });
  if (inspections.front().request.pipeline) {
    add("micro-batches in flight", [](One i) {
      const PlanRequest& r = i.request;
      return std::to_string(MicroBatchesInFlight(*r.pipeline, r.micro_batches, r.schedule));
    });
  }
  add("prediction", [](One i) { return i.prediction ? HumanBytes(i.prediction->none) : "-"; });
  add("prediction, sharing",
      [](One i) { return i.prediction ? HumanBytes(i.prediction->sharing) : "-"; });
  add("parameters", [](One i) { return HumanBytes(i.constants.parameters); });
  add("parameter gradients", [](One i) { return HumanBytes(i.constants.parameter_gradients); });
  add("optimizer state", [](One i) { return HumanBytes(i.optimizer_state); });
  add("inputs", [](One i) { return HumanBytes(i.constants.inputs); });
  if (inspections.front().request.sharding) {
    add("whole at a time", [](One i) { return HumanBytes(i.constants.unsharded); });
  }
  add("forward", [](One i) { return CostText(i.forward_cost, i.request.cost_unit); });
  add("backward", [](One i) { return CostText(i.backward_cost, i.request.cost_unit); });
  for (const RequestField& field : RequestFields()) {
    if (!DescribesModel(field, inspections.front().request) || field.name == "cost_unit") continue;
    add(TitleOf(field),
        [&](One i) { return fmt::format("{}", fmt::join(TextsOf(field, i.request), " ")); });
  }
  return table;
}

TextTable OperatorsTable(const Inspection& one) {
  TextTable table;
  table.columns = {{"operator", false, TableColumn::Fit::kElide},
                   {"nodes", true},
                   {"outputs", true},
                   {"forward", true},
                   {"share", true},
                   {"backward", true},
                   {"share", true}};
  for (const OperatorRow& row : one.operators) {
    table.rows.push_back({row.op, std::to_string(row.count), HumanBytes(row.outputs),
                          CostText(row.forward_cost, one.request.cost_unit),
                          Share(row.forward_cost, one.forward_cost),
                          CostText(row.backward_cost, one.request.cost_unit),
                          Share(row.backward_cost, one.backward_cost)});
  }
  return table;
}

TextTable LargestTensorsTable(const Inspection& one, size_t name_width) {
  TextTable table;
  table.columns = {{"largest tensors", false, TableColumn::Fit::kElide},
                   {"from", false, TableColumn::Fit::kElide},
                   {"bytes", true}};
  for (const TensorRow& row : one.largest) {
    table.rows.push_back({Elided(row.name, name_width),
                          row.producer.empty() ? "input" : row.producer, HumanBytes(row.bytes)});
  }
  return table;
}

TextTable RestoredOperatorsTable(const Inspection& one) {
  TextTable table;
  table.columns = {{"restored", false, TableColumn::Fit::kElide},
                   {"from", false, TableColumn::Fit::kElide},
                   {"named by the file", false, TableColumn::Fit::kElide},
                   {"nodes", true}};
  for (const RestoredRow& row : one.restored) {
    table.rows.push_back({row.op, fmt::format("{}", fmt::join(row.replaced, ", ")),
                          row.origin.empty() ? "-" : row.origin, std::to_string(row.count)});
  }
  return table;
}

// If there are several models, each line names its own.
std::string VerdictsText(const std::vector<Inspection>& inspections, const Terminal& terminal) {
  std::string text;
  for (const Inspection& one : inspections) {
    const std::string label = inspections.size() > 1 ? Printable(one.model.name) : "";
    text += VerdictLines(one.verdicts, label, terminal);
  }
  return text.empty() ? text : '\n' + text;
}

// Shows the figures, operators and largest tensors of one model, or the figures of several models
// side by side. The verdicts follow.
std::string InspectionText(const std::vector<Inspection>& inspections, const Screen& screen) {
  const size_t table_width = screen.out.table_width();
  std::string text = FiguresTable(inspections).Text(0, table_width);
  const std::string verdicts = VerdictsText(inspections, screen.out);
  if (inspections.size() > 1) return text + verdicts;
  const Inspection& one = inspections.front();
  constexpr size_t kOtherColumns = 36;
  const size_t name_width =
      std::max(static_cast<size_t>(screen.out.width), 2 * kOtherColumns) - kOtherColumns;
  text += '\n' + OperatorsTable(one).Text(0, table_width);
  if (!one.restored.empty()) text += '\n' + RestoredOperatorsTable(one).Text(0, table_width);
  text += '\n' + LargestTensorsTable(one, name_width).Text(0, table_width);
  if (one.accounting) {
    text += '\n' + AccountingTable(*one.accounting, "memory, keeping all").Text(0, table_width);
  }
  return text + verdicts;
}

std::string InspectionMarkdown(const std::vector<Inspection>& inspections) {
  std::string text = FiguresTable(inspections).Markdown();
  if (inspections.size() == 1) text += '\n' + OperatorsTable(inspections.front()).Markdown();
  return text;
}

// Has one row for each operator of each model.
std::string InspectionCsv(const std::vector<Inspection>& inspections) {
  TextTable table;
  table.columns = {{"model"},        {"op"},           {"count"},
                   {"output_bytes"}, {"forward_cost"}, {"backward_cost"}};
  for (const Inspection& one : inspections) {
    for (const OperatorRow& row : one.operators) {
      table.rows.push_back(
          {one.model.name, row.op, std::to_string(row.count), std::to_string(row.outputs.count()),
           std::to_string(row.forward_cost.count()), std::to_string(row.backward_cost.count())});
    }
  }
  return table.Csv();
}

}  // namespace

void AddInspectOptions(CommandLine& line, Options& options) {
  line.Positionals("MODEL", "ONNX models or graph.json files, shown side by side",
                   &options.sources);
  options.request.Add(line, RequestFlags::Group::kReading);
  options.request.Add(line, "optimizer");
  options.request.Add(line, "master_weights");
  line.List("--fail-on", "LIMIT",
            "exit with 1 if a limit is exceeded: peak>16GiB, total>24GiB, saved>8GiB, warnings>0",
            &options.fail_on);
  line.Value("--max-peak", "SIZE", "short for --fail-on 'peak>SIZE'", &options.max_peak);
  options.request.Add(line, "memory", "", "exit with 1 if training needs more: 8GiB, rtx4090");
  options.request.Add(line, "reserve");
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "output format", &options.format);
  AddCommonOptions(line, options);
}

namespace {

Inspection Inspect(const Source& source) {
  Inspection result = InspectGraph(source.step());
  result.model = source.identity;
  result.request = source.request;
  result.keep_all_peak = KeepAllPeak(source.step());
  result.optimizer_state = OptimizerState(source.request, source.step().optimized());
  result.restored = CountRestored(source.restored);
  result.warnings = source.warnings;
  if (source.request.memory.is_given()) result.accounting = AccountForKeepAll(source);
  return result;
}

// Lists the dimensions to bind before anything else about the model can be shown.
Result<ExitCode> ListOpenDims(const Options& options, const Error& error, const Screen& screen) {
  const std::vector<std::string> dims = OpenDimsIn(error);
  std::string text =
      fmt::format("ckplan {}   {}\n  open dimensions  ", CKPLAN_VERSION,
                  Printable(std::filesystem::path(options.sources.front()).filename().string()));
  for (const std::string& dim : dims) {
    text += " " + Printable(dim, kLongestName);
  }
  CKPLAN_RETURN_IF_ERROR(screen.Print(text + "\n"));
  const std::string sizes = SuggestedSizes(options, error);
  if (!sizes.empty()) screen.Note("next: ckplan inspect" + options.typed.With(sizes));
  return ExitCode::kOk;
}

// Says which part of a file can be trained if the whole cannot.
Result<ExitCode> ShowTrainablePart(const Options& options, const Error& error,
                                   const Screen& screen) {
  const std::string ends = SuggestOutputs(error);
  const std::string file = std::filesystem::path(options.sources.front()).filename().string();
  std::string why = error.message;
  if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
  CKPLAN_RETURN_IF_ERROR(screen.Print(fmt::format(
      "ckplan {}   {}\n  not a step       {}\n  can be trained   up to {}\n", CKPLAN_VERSION,
      Printable(file), PrintableMessage(why), Printable(ends, kLongestName))));
  if (options.typed.CanRepeat()) {
    screen.Note("next: ckplan plan" + options.typed.With(" --outputs " + ShellWord(ends)));
  }
  return ExitCode::kOk;
}

// Prints on standard error which limits the models fail, unless `is_reported`. Returns the exit
// code.
ExitCode ReportModelLimits(const std::vector<Inspection>& inspections, bool is_reported) {
  ExitCode code = ExitCode::kOk;
  for (const Inspection& one : inspections) {
    if (AllHold(one.verdicts)) continue;
    PrintFailures(one.model.name, one.verdicts, is_reported);
    code = ExitCode::kDifferent;
  }
  return code;
}

}  // namespace

Result<ExitCode> RunInspect(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, options.request.Read());
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Threshold> limits,
                          ThresholdsIn(options, LimitSubject::kModel));
  std::vector<Inspection> inspections;
  Progress progress(screen.shows_progress);
  for (const std::string& path : options.sources) {
    progress.Stage(fmt::format("reading {}", path));
    Result<Source> loaded = LoadSource(path, request);
    const bool is_alone = options.sources.size() == 1 && options.format == "text";
    if (is_alone && limits.empty() && !loaded.ok() && !OpenDimsIn(loaded.error()).empty()) {
      progress.Clear();
      return ListOpenDims(options, loaded.error(), screen);
    }
    if (is_alone && limits.empty() && !loaded.ok() && !SuggestOutputs(loaded.error()).empty()) {
      progress.Clear();
      return ShowTrainablePart(options, loaded.error(), screen);
    }
    CKPLAN_ASSIGN_OR_RETURN(const Source source, std::move(loaded));
    inspections.push_back(Inspect(source));
    ModelMeasures measures = MeasuresOf(inspections.back());
    measures.need = [&](const Budget& memory) {
      PlanRequest within = source.request;
      within.memory = memory;
      return AccountFor({source.step(), within, source.buffers}, source.step().KeepAll(),
                        measures.peak)
          .need();
    };
    inspections.back().verdicts = EvaluateFailOn(limits, measures);
    progress.Clear();
    WarnOf(source, screen);
    // With a memory, the source has the warning.
    if (!request.memory.is_given()) WarnOfUnknownState(limits, source, screen);
  }
  const std::string text = options.format == "json"  ? InspectionJson(inspections)
                           : options.format == "md"  ? InspectionMarkdown(inspections)
                           : options.format == "csv" ? InspectionCsv(inspections)
                                                     : InspectionText(inspections, screen);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ReportModelLimits(inspections, options.format == "text");
}

}  // namespace ckplan
