// ckplan diff: what changed between two plans.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/plan_file.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/planning.h"
#include "cli/common/interrupt.h"
#include "cli/common/text_table.h"
#include "lib/emit/human_bytes.h"
#include "lib/emit/json_writer.h"
#include "lib/plan/diff.h"

namespace ckplan {
namespace {

constexpr size_t kShownChanges = 12;

struct Side {
  std::string title;
  PlanDigest digest;
};

struct Comparison {
  Side older;
  Side newer;
  PlanDiff diff;
};

std::string SignedBytes(Bytes bytes) {
  if (bytes == Bytes(0)) return "0 B";
  if (bytes < Bytes(0)) return fmt::format("-{}", HumanBytes(Bytes(0) - bytes));
  return fmt::format("+{}", HumanBytes(bytes));
}

double Growth(Bytes older, Bytes newer) {
  return older == Bytes(0)
             ? 0
             : static_cast<double>((newer - older).count()) / static_cast<double>(older.count());
}

// "+ keep", "- keep" or "~ recompute 2x -> 1x"
std::pair<std::string, std::string> SignAndVerb(const NodeChange& change) {
  if (change.old_runs == 0) return {"+", "new"};
  if (change.new_runs == 0) return {"-", "gone"};
  switch (change.kind) {
    case NodeChange::Kind::kKept:
      return {change.old_runs == change.new_runs && change.held < Bytes(0) ? "-" : "+", "keep"};
    case NodeChange::Kind::kNotKept:
      return {"-", "keep"};
    case NodeChange::Kind::kRecomputed:
      break;
  }
  return {"~", "recompute"};
}

std::string RunsText(const NodeChange& change) {
  return change.old_runs == change.new_runs
             ? ""
             : fmt::format("{}x -> {}x", change.old_runs, change.new_runs);
}

TextTable FiguresTable(const Comparison& c) {
  const PlanFigures& a = c.older.digest.figures;
  const PlanFigures& b = c.newer.digest.figures;
  const double old_time = 1 + StepOverheadRatio(a);
  const double new_time = 1 + StepOverheadRatio(b);
  TextTable table;
  table.columns = {{""}, {"old", true}, {"new", true}, {"change", true}, {"", true}};
  table.rows = {
      {"peak", HumanBytes(a.peak), HumanBytes(b.peak), SignedBytes(b.peak - a.peak),
       SignedPercent(Growth(a.peak, b.peak))},
      {"time", fmt::format("{:.3f}", old_time), fmt::format("{:.3f}", new_time),
       fmt::format("{:+.3f}", new_time - old_time), SignedPercent(new_time / old_time - 1)},
      {"kept", std::to_string(c.diff.old_kept), std::to_string(c.diff.new_kept),
       fmt::format("{:+}", c.diff.new_kept - c.diff.old_kept), ""}};
  return table;
}

TextTable ChangesTable(const PlanDiff& diff, size_t shown) {
  TextTable table;
  table.columns = {{"", false}, {"node"}, {"runs"}, {"held", true}};
  Bytes rest;
  for (size_t i = 0; i < diff.changes.size(); ++i) {
    const NodeChange& change = diff.changes[i];
    if (i >= shown) {
      rest += change.held;
      continue;
    }
    const auto [sign, verb] = SignAndVerb(change);
    table.rows.push_back({fmt::format("{} {}", sign, verb), change.name, RunsText(change),
                          SignedBytes(change.held)});
  }
  if (diff.changes.size() > shown) {
    table.rows.push_back(
        {"~", fmt::format("[{} others]", diff.changes.size() - shown), "", SignedBytes(rest)});
  }
  return table;
}

std::string Heading(const Side& side) {
  return fmt::format("{}   {}   {} sha256:{}", side.title, side.digest.request.algorithm,
                     side.digest.model.name, side.digest.model.sha256.substr(0, 12));
}

std::string DiffText(const Comparison& c, bool is_verbose) {
  std::string text = fmt::format("--- {}\n+++ {}\n", Heading(c.older), Heading(c.newer));
  text += FiguresTable(c).Text();
  const size_t shown = is_verbose ? c.diff.changes.size() : kShownChanges;
  if (c.diff.changes.empty()) return text + "\nno node is treated differently\n";
  return text + '\n' + ChangesTable(c.diff, shown).Text();
}

std::string DiffMarkdown(const Comparison& c, bool is_verbose) {
  const size_t shown = is_verbose ? c.diff.changes.size() : kShownChanges;
  std::string text = fmt::format(
      "**Plan of `{}`**: `{}` ({}) -> `{}` ({})\n\n", c.newer.digest.model.name, c.older.title,
      c.older.digest.request.algorithm, c.newer.title, c.newer.digest.request.algorithm);
  text += FiguresTable(c).Markdown();
  if (c.diff.changes.empty()) return text + "\nNo node is treated differently.\n";
  return text + '\n' + ChangesTable(c.diff, shown).Markdown();
}

void WriteSide(std::string_view key, const Side& side, int64_t kept, JsonWriter* json) {
  const PlanFigures& figures = side.digest.figures;
  json->Key(key).BeginObject(JsonLayout::kInline);
  json->Key("model").Text(side.digest.model.name);
  json->Key("sha256").Text(side.digest.model.sha256);
  json->Key("algorithm").Text(side.digest.request.algorithm);
  json->Key("peak_bytes").Amount(figures.peak);
  json->Key("arena_bytes").Amount(figures.arena);
  json->Key("overhead_cost").Amount(figures.overhead);
  json->Key("forward_cost").Amount(figures.forward_cost);
  json->Key("backward_cost").Amount(figures.backward_cost);
  json->Key("kept_nodes").Integer(kept);
  json->End();
}

std::string DiffJson(const Comparison& c) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("differs").Boolean(c.diff.has_changes);
  WriteSide("old", c.older, c.diff.old_kept, &json);
  WriteSide("new", c.newer, c.diff.new_kept, &json);
  json.Key("changes").BeginArray(JsonLayout::kLines);
  for (const NodeChange& change : c.diff.changes) {
    const auto [sign, verb] = SignAndVerb(change);
    json.BeginObject(JsonLayout::kInline);
    json.Key("sign").Text(sign);
    json.Key("change").Text(verb);
    json.Key("node").Text(change.name);
    json.Key("old_runs").Integer(change.old_runs);
    json.Key("new_runs").Integer(change.new_runs);
    json.Key("held_bytes").Amount(change.held);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

Result<Side> FromFile(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(PlanDigest digest, ReadPlanDigestFile(path));
  return Side{path, std::move(digest)};
}

Result<Side> FromAlgorithm(const Options& options, const Source& source, const std::string& name) {
  CKPLAN_ASSIGN_OR_RETURN(const PlannerRequest request, PlannerRequestOf(options, name));
  const Interrupt interrupt(std::nullopt);
  CKPLAN_ASSIGN_OR_RETURN(Plan plan, MakePlan(source.graph, request, {interrupt.token()}));
  Complete(source, &plan);
  return Side{name, DigestOf(source.graph, plan)};
}

Result<std::pair<Side, Side>> FromModel(const Options& options) {
  const std::string list = options.algorithm.value_or("");
  const size_t comma = list.find(',');
  if (comma == std::string::npos || list.find(',', comma + 1) != std::string::npos) {
    return MakeError(ErrorCode::kUsage,
                     "ckplan diff takes two plan files, or one model and --algo with two names: "
                     "--algo approx-dp,exact-dp");
  }
  CKPLAN_ASSIGN_OR_RETURN(const SourceRequest request, SourceRequestOf(options, options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(request));
  CKPLAN_ASSIGN_OR_RETURN(Side older, FromAlgorithm(options, source, list.substr(0, comma)));
  CKPLAN_ASSIGN_OR_RETURN(Side newer, FromAlgorithm(options, source, list.substr(comma + 1)));
  return std::pair(std::move(older), std::move(newer));
}

Result<std::pair<Side, Side>> Sides(const Options& options) {
  if (options.source.empty()) return FromModel(options);
  if (options.algorithm) {
    return MakeError(ErrorCode::kUsage, "--algo is for one model, not for two plan files");
  }
  CKPLAN_ASSIGN_OR_RETURN(Side older, FromFile(options.plan));
  CKPLAN_ASSIGN_OR_RETURN(Side newer, FromFile(options.source));
  return std::pair(std::move(older), std::move(newer));
}

}  // namespace

void AddDiffOptions(CommandLine& line, Options& options) {
  line.Positional("OLD", "a plan file or an annotated model; or the one model to plan twice",
                  &options.plan);
  line.OptionalPositional("NEW", "the other plan file or annotated model", &options.source);
  line.Value("-a,--algo", "NAME,NAME", "for one model: the two algorithms to compare",
             &options.algorithm);
  AddPlanningOptions(line, options);
  AddSourceOptions(line, options);
  line.Flag("--exit-code", "exit with 1 if the plans differ", &options.has_exit_code);
  line.Flag("--strict", "refuse plans of different models (exit code 3)", &options.is_strict);
  line.Choice("-f,--format", {"text", "json", "md"}, "of the difference", &options.format);
  AddScreenOptions(line, options);
  line.Flag("-v,--verbose", "every node that is treated differently", &options.is_verbose);
}

Result<ExitCode> RunDiff(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(auto sides, Sides(options));
  PlanDiff diff = DiffPlans(sides.first.digest, sides.second.digest);
  const Comparison comparison{std::move(sides.first), std::move(sides.second), std::move(diff)};
  if (!comparison.diff.has_same_model) {
    constexpr std::string_view kOtherModels =
        "the plans are for different models; their nodes are matched by name";
    if (options.is_strict) return MakeError(ErrorCode::kInvalidInput, std::string(kOtherModels));
    screen.Warn(kOtherModels);
  }
  const std::string text = options.format == "json" ? DiffJson(comparison)
                           : options.format == "md" ? DiffMarkdown(comparison, options.is_verbose)
                                                    : DiffText(comparison, options.is_verbose);
  if (!screen.is_quiet || options.format != "text") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  }
  return options.has_exit_code && comparison.diff.has_changes ? ExitCode::kDifferent
                                                              : ExitCode::kOk;
}

}  // namespace ckplan
