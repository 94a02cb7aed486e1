// ckexec profile: writes each node's time and workspace to costs.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/ckexec/backends.h"
#include "cli/ckexec/commands.h"
#include "cli/ckexec/options.h"
#include "cli/ckexec/session.h"
#include "cli/common/exit_code.h"
#include "cli/common/files.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/result.h"
#include "lib/base/text.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/element_orders.h"
#include "lib/executor/core/profile.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {

namespace {

// ckexec profile --device: the workspaces of a model's operators on a GPU you don't have.
struct NodeOnDevice {
  std::string name;
  OpWorkspace workspace;
  std::vector<LibraryCall> calls;
  bool is_attention = false;
  std::string why_on_host;
};

// Rejects options that only apply to measurements.
Result<Done> CheckOptions(const ExecOptions& options) {
  const auto measurement_only_error = [](const char* flag) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{} controls measurements, but --device runs nothing; leave out one of them",
                    flag));
  };
  if (options.runs) return measurement_only_error("--runs");
  if (options.threads) return measurement_only_error("--threads");
  if (options.seed) return measurement_only_error("--seed");
  if (options.memory_limit) return measurement_only_error("--memory-limit");
  return Done{};
}

Result<std::vector<NodeOnDevice>> NodesOn(Backend& backend, const ModelAndPlan& planned,
                                          const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(StepGraph step,
                          BuildStepGraph(planned.model, planned.lowered, planned.autograd));
  ChooseOrders(step, backend);
  CKPLAN_ASSIGN_OR_RETURN(const StepOperators operators, PrepareOperators(backend, step));
  for (const std::string& note : step.notes) screen.Note(note);
  for (const std::string& note : operators.notes) screen.Note(note);
  std::vector<NodeOnDevice> nodes;
  for (const NodeId id : operators.nodes.ids()) {
    NodeOnDevice node{
        step.graph.node(id).name, operators.workspaces[id], operators.nodes[id]->LibraryCalls(),
        step.nodes[id].spec.type == "FusedAttention", operators.nodes[id]->WhyOnHost()};
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string WorkspacesJson(const DescribedBackend& described, const ModelIdentity& model,
                           const std::vector<NodeOnDevice>& nodes) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("device").Text(described.device);
  json.Key("backend").Text(described.backend->Describe());
  json.Key("model").Text(model.name);
  json.Key("product_workspace_bytes").Integer(described.product_workspace_bytes);
  json.Key("nodes").BeginArray(JsonLayout::kLines);
  for (const NodeOnDevice& node : nodes) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("name").Text(node.name);
    json.Key("forward_workspace_bytes").Integer(node.workspace.forward);
    json.Key("backward_workspace_bytes").Integer(node.workspace.backward);
    if (!node.calls.empty()) {
      json.Key("engines").BeginArray(JsonLayout::kInline);
      for (const LibraryCall& call : node.calls) {
        json.BeginObject(JsonLayout::kInline);
        json.Key("use").Text(call.use);
        json.Key("engine").Integer(call.choice.engine);
        json.Key("rank").Integer(call.choice.rank);
        json.Key("uses_tensor_cores").Boolean(call.choice.uses_tensor_cores);
        json.Key("workspace_bytes").Integer(call.choice.workspace);
        json.End();
      }
      json.End();
    }
    if (!node.why_on_host.empty()) json.Key("on_host").Text(node.why_on_host);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

TextTable EnginesTable(const std::vector<NodeOnDevice>& nodes) {
  TextTable table;
  table.columns = {{"node", false, TableColumn::Fit::kElide},
                   {"use"},
                   {"engine", true},
                   {"rank", true},
                   {"tensor cores"},
                   {"workspace", true}};
  for (const NodeOnDevice& node : nodes) {
    for (const LibraryCall& call : node.calls) {
      table.rows.push_back({node.name, call.use, std::to_string(call.choice.engine),
                            std::to_string(call.choice.rank),
                            call.choice.uses_tensor_cores ? "yes" : "no",
                            HumanBytes(Bytes(call.choice.workspace))});
    }
  }
  return table;
}

std::string Summary(const DescribedBackend& described, const ModelIdentity& model,
                    const std::vector<NodeOnDevice>& nodes) {
  size_t calls = 0;
  const NodeOnDevice* largest = nullptr;
  const auto need = [](const NodeOnDevice& node) {
    return std::max(node.workspace.forward, node.workspace.backward);
  };
  for (const NodeOnDevice& node : nodes) {
    calls += node.calls.size();
    if (largest == nullptr || need(node) > need(*largest)) largest = &node;
  }
  std::string text = fmt::format("{}   {} nodes   {} cuDNN calls   products in {}",
                                 Printable(model.name, kLongestName), nodes.size(), calls,
                                 HumanBytes(Bytes(described.product_workspace_bytes)));
  if (largest != nullptr) {
    text += fmt::format("   largest workspace {} ({})", HumanBytes(Bytes(need(*largest))),
                        Printable(largest->name, kLongestName));
  }
  return text + fmt::format("\n{}\n", described.backend->Describe());
}

std::string NextStep(const ExecOptions& options, const DescribedBackend& described) {
  if (!options.output) {
    return fmt::format("next: add -o {} to write this for ckplan\n",
                       NewJsonFile("workspaces", {options.model}));
  }
  return PlanningStep(options,
                      fmt::format("--cost flops:{} --workspaces {} --align {}", described.device,
                                  PathWord(*options.output), BufferAlignment(*described.backend)));
}

// Prepares the operators for the device without running them, and writes their workspaces for
// `ckplan --workspaces`. kUsage: an option only applies to measurements.
Result<ExitCode> RunDeviceProfile(const ExecOptions& options, const Screen& screen) {
  CKPLAN_RETURN_IF_ERROR(CheckOptions(options));
  CKPLAN_RETURN_IF_ERROR(CheckOutput(options, options.output));
  CKPLAN_ASSIGN_OR_RETURN(const DescribedBackend described, MakeDescribedBackend(options));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.model));
  CKPLAN_ASSIGN_OR_RETURN(const ModelAndPlan planned,
                          LoadModelAndPlan(options, *described.backend, PlanNeed::kNone));
  progress.Stage("asking cuDNN");
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<NodeOnDevice> nodes,
                          NodesOn(*described.backend, planned, screen));
  progress.Clear();
  const auto by_library = std::count_if(nodes.begin(), nodes.end(), [](const NodeOnDevice& node) {
    return node.is_attention && node.why_on_host.empty();
  });
  if (by_library > 0) {
    screen.Note(
        fmt::format("attention of {} node{} is computed by cuDNN, which has deterministic engines "
                    "for it",
                    by_library, by_library == 1 ? "" : "s"));
  }
  const ModelIdentity& model = planned.model.identity();
  const std::string json = WorkspacesJson(described, model, nodes);
  if (options.output == kStandardStream) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(json));
    return ExitCode::kOk;
  }
  if (options.output) CKPLAN_RETURN_IF_ERROR(WriteUninterrupted(*options.output, json));
  if (screen.is_quiet) return ExitCode::kOk;
  std::string text;
  if (!options.output) text = EnginesTable(nodes).Text(0, screen.out.table_width()) + "\n";
  CKPLAN_RETURN_IF_ERROR(
      screen.Print(text + Summary(described, model, nodes) + NextStep(options, described)));
  return ExitCode::kOk;
}

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
             "ask cuDNN for engines and workspaces of a GPU you don't have: h100, a100, b200",
             &options.device);
  line.Value("--runs", "N", "measured steps, after one warm-up step (default 5)", &options.runs);
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
  for (const std::string& note : step.operators->notes) screen.Note(note);
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
