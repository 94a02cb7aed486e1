// ckexec profile: writes time and workspace of each node, as costs.json.
#include <fmt/format.h>

#include <cmath>

#include "cli/ckexec/backends.h"
#include "cli/ckexec/commands.h"
#include "cli/ckexec/device_profile.h"
#include "cli/ckexec/options.h"
#include "cli/ckexec/session.h"
#include "cli/common/files.h"
#include "lib/base/text.h"
#include "lib/executor/core/placed_program.h"
#include "lib/executor/core/profile.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

std::string CostsJson(const Backend& backend, const ModelIdentity& model,
                      const std::vector<ProfiledNode>& nodes) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("unit").Text("ns");
  json.Key("backend").Text(fmt::format("{}: {}", backend.name(), backend.Describe()));
  json.Key("model").Text(model.name);
  json.Key("nodes").BeginArray(JsonLayout::kLines);
  for (const ProfiledNode& node : nodes) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("name").Text(node.name);
    json.Key("forward_cost").Integer(Nanoseconds(node.forward_seconds));
    json.Key("backward_cost").Integer(Nanoseconds(node.backward_seconds));
    json.Key("forward_workspace_bytes").Integer(node.workspace.forward);
    json.Key("backward_workspace_bytes").Integer(node.workspace.backward);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

std::string Summary(const Backend& backend, const ModelIdentity& model,
                    const std::vector<ProfiledNode>& nodes) {
  double forward = 0;
  double backward = 0;
  int64_t workspace = 0;
  for (const ProfiledNode& node : nodes) {
    forward += node.forward_seconds;
    backward += node.backward_seconds;
    workspace = std::max(workspace, std::max(node.workspace.forward, node.workspace.backward));
  }
  return fmt::format(
      "{}   {} nodes   forward {}, backward {}   largest workspace {}\n"
      "{}: {}\n",
      Printable(model.name, kLongestName), nodes.size(), DurationText(forward),
      DurationText(backward), HumanBytes(Bytes(workspace)), backend.name(), backend.Describe());
}

std::string NextStep(const ExecOptions& options, const Backend& backend) {
  if (!options.output) {
    return fmt::format("next: add -o {} to write the costs\n",
                       NewJsonFile("costs", {options.model}));
  }
  return PlanningStep(options,
                      fmt::format("--cost {} --align {}", ShellWord("file:" + *options.output),
                                  BufferAlignment(backend)));
}

}  // namespace

void AddProfileOptions(CommandLine& line, ExecOptions& options) {
  line.Positional("MODEL", "the model to measure", &options.model);
  AddDimOptions(line, options);
  AddBackendOptions(line, options);
  line.Value("--device", "NAME",
             "ask cuDNN for engines and workspaces on a GPU that is not there: h100, a100, b200",
             &options.device);
  line.Value("--runs", "N", "measured steps, after one that warms up (default 5)", &options.runs);
  line.Value("-o,--output", "FILE", "where to write the costs; - for standard output",
             &options.output);
  AddExecScreenOptions(line, options);
}

Result<ExitCode> RunProfile(const ExecOptions& options, const Screen& screen) {
  if (options.device) return RunDeviceProfile(options, screen);
  ProfileOptions profile;
  CKPLAN_ASSIGN_OR_RETURN(profile.seed, SeedOf(options));
  CKPLAN_ASSIGN_OR_RETURN(profile.runs, CountOf(options.runs, "--runs", profile.runs, 1));
  CKPLAN_RETURN_IF_ERROR(CheckOutput(options, options.output));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(options));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.model));
  CKPLAN_ASSIGN_OR_RETURN(const ModelAndPlan planned,
                          LoadModelAndPlan(options, *backend, PlanNeed::kNone));
  CKPLAN_ASSIGN_OR_RETURN(StepOnBackend step, StepOnBackend::Create(*backend, planned, options));
  progress.Stage("measuring");
  CKPLAN_ASSIGN_OR_RETURN(
      const std::vector<ProfiledNode> nodes,
      ProfileNodes(*backend, *step.graph, *step.operators, *step.constants, profile));
  progress.Clear();
  for (const std::string& note : step.graph->notes) screen.Note(note);
  const std::string json = CostsJson(*backend, planned.model.identity(), nodes);
  if (options.output == kStandardStream) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(json));
    return ExitCode::kOk;
  }
  if (options.output) {
    CKPLAN_RETURN_IF_ERROR(WriteUninterrupted(*options.output, json));
  }
  if (!screen.is_quiet) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(Summary(*backend, planned.model.identity(), nodes) +
                                        NextStep(options, *backend)));
  }
  return ExitCode::kOk;
}

}  // namespace ckplan
