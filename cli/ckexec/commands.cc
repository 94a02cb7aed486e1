#include "cli/ckexec/commands.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "cli/ckexec/backends.h"
#include "cli/common/self_description.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {

namespace {

struct ExecCommand {
  std::string_view name;
  std::string_view summary;  // One line.
  std::string_view example;
  void (*add_options)(CommandLine& line, ExecOptions& options);
  Result<ExitCode> (*run)(const ExecOptions& options, const Screen& screen);
};

constexpr std::array kCommands = {
    ExecCommand{"validate", "run a training step with and without the plan, and prove them equal",
                "ckexec validate resnet50.planned.onnx", AddValidateOptions, RunValidate},
    ExecCommand{"profile", "measure each node's time and workspace for ckplan's costs",
                "ckexec profile resnet50.onnx -D N=8 -o costs.json", AddProfileOptions, RunProfile},
    ExecCommand{"run", "train a few steps with the plan and print the loss",
                "ckexec run resnet50.planned.onnx --steps 5", AddRunOptions, RunRun},
    ExecCommand{"ops", "list the operators that a backend can run", "ckexec ops", AddOpsOptions,
                RunOps},
    ExecCommand{"completion", "print a shell's completion script",
                "source <(ckexec completion bash)", AddExecCompletionOptions, RunExecCompletion},
    ExecCommand{"man", "print the manual page of a command", "ckexec man validate | man -l -",
                AddExecManOptions, RunExecMan},
};

constexpr std::string_view kExecExample = "ckexec validate resnet50.planned.onnx";
constexpr std::string_view kExecPurpose =
    "Runs the training step of a planned model for real and proves the plan: the same gradients,\n"
    "bit for bit, in the memory that the plan predicts.";

// The common exit codes, described for ckexec.
constexpr std::array kMeanings = {
    ExitCodeMeaning{ExitCode::kOk, "done; for validate: the plan is proven"},
    ExitCodeMeaning{ExitCode::kUsage, "invalid command line, or a plan that ckexec cannot run"},
    ExitCodeMeaning{ExitCode::kInput,
                    "a file cannot be read or written, or the model cannot be run"},
    ExitCodeMeaning{ExitCode::kInfeasible, "there is not enough memory"},
    ExitCodeMeaning{ExitCode::kCheckFailed,
                    "the plan is not proven, fails the check, or is for another model"},
    ExitCodeMeaning{ExitCode::kInternal, "internal error; please report it"},
    ExitCodeMeaning{ExitCode::kInterrupted, "interrupted"},
};

std::string Help() {
  std::string text = fmt::format(
      "Example:\n  {}\n\n{}\n\n"
      "Usage: ckexec COMMAND [options]\n\n"
      "Commands (see `ckexec help COMMAND`):\n",
      kExecExample, kExecPurpose);
  for (const ExecCommand& command : kCommands) {
    text += fmt::format("  {:<11} {}\n", command.name, command.summary);
  }
  text += "\nOptions:\n";
  text += "  -h, --help     show this and exit\n";
  text += "  -V, --version  show the version and exit\n\n";
  return text + ExitCodeLines(kMeanings) + "\n";
}

Result<const ExecCommand*> FindExecCommand(const std::string& name) {
  std::vector<std::string_view> names = {"help"};
  for (const ExecCommand& command : kCommands) {
    if (command.name == name) return &command;
    names.push_back(command.name);
  }
  return Error{ErrorCode::kUsage,
               name.empty()
                   ? "no command given; try ckexec validate MODEL, where MODEL contains a plan"
                   : fmt::format("unknown command \"{}\"{}", name, DidYouMean(name, names)),
               {"`ckexec --help` lists the commands"}};
}

CommandLine CommandLineOf(const ExecCommand& command, ExecOptions& options) {
  CommandLine line(fmt::format("ckexec {}", command.name), command.example,
                   Sentence(command.summary));
  command.add_options(line, options);
  return line;
}

std::vector<std::string> CommandsWith(const std::string& flag) {
  std::vector<std::string> names;
  for (const ExecCommand& command : kCommands) {
    ExecOptions options;
    if (CommandLineOf(command, options).HasOption(flag)) {
      names.push_back(fmt::format("ckexec {}", command.name));
    }
  }
  return names;
}

}  // namespace

ProgramDescription DescribeExec() {
  ProgramDescription program;
  program.name = "ckexec";
  program.version = CKPLAN_VERSION;
  program.summary = "run a planned model's training step and prove the plan";
  program.purpose = kExecPurpose;
  program.example = kExecExample;
  program.exit_codes = kMeanings;
  for (const ExecCommand& command : kCommands) {
    ExecOptions options;
    program.commands.push_back(CommandLineOf(command, options).description());
  }
  return program;
}

void AddDimOptions(CommandLine& line, ExecOptions& options) {
  options.request.Add(line, "dims");
  options.request.Add(line, "input_shapes");
  options.request.Add(line, "batch");
  options.request.Add(line, "outputs");
  options.request.Add(line, "weights");
  options.request.Add(line, "set_inputs");
  options.request.Add(line, "op_shapes");
  options.request.Add(line, "fused");
  options.request.Add(line, "restored");
  options.request.Add(line, "autograd");
}

void AddPlanCostOption(CommandLine& line, ExecOptions& options) {
  options.request.Add(line, "cost_model", "file:PATH",
                      "costs that the plan was made with, if they came from a file");
  options.request.Add(line, "workspaces", "", "workspaces that the plan was made with");
}

void AddBackendOptions(CommandLine& line, ExecOptions& options) {
  AddBackendChoice(line, "backend that runs the model", &options.backend);
  line.Flag("--bf16", "store activations as bfloat16; a bf16 plan implies it",
            &options.stores_bfloat16);
  line.Value("--threads", "N", "threads of the cpu backend (default: one per processor)",
             &options.threads);
  line.Choice("--tf32", {"none", "convolutions", "all"},
              "what the cuda backend computes in TF32 (default none)", &options.tf32);
  line.Flag("--allow-tf32", "the same as --tf32 all", &options.allows_tf32);
  line.Value("--workspace-limit", "SIZE",
             "workspace limit of each cuda library call (default about 256MiB)",
             &options.workspace_limit);
  line.Value("--memory-limit", "SIZE", "limit of the device memory to use", &options.memory_limit);
  line.Value("--seed", "N", "seed for the batch, random operators and missing weights",
             &options.seed);
}

void AddExecScreenOptions(CommandLine& line, ExecOptions& options) {
  line.Choice("--color", {"auto", "always", "never"}, "when to color text", &options.color);
  line.Flag("-q,--quiet", "print only errors and requested output", &options.is_quiet);
  line.Flag("--no-progress", "show no progress on a terminal", &options.has_no_progress);
}

Result<ExitCode> RunExec(std::vector<std::string> typed) {
  const Screen plain = DetectScreen("auto", /*is_quiet=*/false, /*has_no_progress=*/false);
  std::vector<std::string> arguments = WithoutHelpWord(std::move(typed));
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "-V" || first == "--version") {
    CKPLAN_RETURN_IF_ERROR(plain.Print("ckexec " CKPLAN_VERSION "\n"));
    return ExitCode::kOk;
  }
  if (first == "-h" || first == "--help") {
    CKPLAN_RETURN_IF_ERROR(plain.PrintHelp(Help()));
    return ExitCode::kOk;
  }
  CKPLAN_ASSIGN_OR_RETURN(const ExecCommand* command, FindExecCommand(first));
  arguments.erase(arguments.begin());
  ExecOptions options;
  CommandLine line = CommandLineOf(*command, options);
  line.SetElsewhere(CommandsWith);
  line.Footer(ExitCodeLines(kMeanings));
  CKPLAN_ASSIGN_OR_RETURN(const CommandLine::Outcome outcome, line.Parse(std::move(arguments)));
  const Screen screen = DetectScreen(options.color, options.is_quiet, options.has_no_progress);
  if (outcome == CommandLine::Outcome::kRun) return command->run(options, screen);
  CKPLAN_RETURN_IF_ERROR(screen.PrintHelp(line.Help()));
  return ExitCode::kOk;
}

// ckexec ops: lists the operators that a backend can run.

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
  line.Choice("-f,--format", {"text", "json", "md"}, "output format", &options.format);
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

// ckexec completion and ckexec man: output generated from the command table.

void AddExecCompletionOptions(CommandLine& line, ExecOptions& options) {
  AddShellName(line, &options.name);
}

Result<ExitCode> RunExecCompletion(const ExecOptions& options, const Screen& screen) {
  return PrintCompletion(DescribeExec(), options.name, screen);
}

void AddExecManOptions(CommandLine& line, ExecOptions& options) {
  AddCommandName(line, &options.name);
}

Result<ExitCode> RunExecMan(const ExecOptions& options, const Screen& screen) {
  return PrintManPage(DescribeExec(), options.name, screen);
}

}  // namespace ckplan
