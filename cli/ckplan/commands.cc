#include "cli/ckplan/commands.h"

#include <fmt/format.h>

#include <array>

#include "cli/ckplan/config.h"
#include "cli/ckplan/suggestions.h"
#include "cli/common/memory_limit.h"
#include "cli/common/message.h"

namespace ckplan {
namespace {

constexpr std::array kCommands = {
    Command{
        "Plan", "plan",
        "plan a training step: what to keep, recompute and offload (the word `plan` is optional)",
        "ckplan plan resnet50.onnx -D N=64 --budget 60% -o plan.json", AddPlanOptions, RunPlan},
    Command{"Plan", "fit", "find the largest batch that fits a device, and its throughput",
            "ckplan fit resnet50.onnx --memory rtx4090", AddFitOptions, RunFit},
    Command{"Plan", "pareto", "show the trade-off between memory and time",
            "ckplan pareto resnet50.onnx -D N=32,64 --algo best,chen", AddParetoOptions, RunPareto},
    Command{"Plan", "compare", "plan by several algorithms and show the plans side by side",
            "ckplan compare resnet50.onnx vgg16.onnx -D N=32,64 --budget 40%,60% -a best,dtr",
            AddCompareOptions, RunCompare},
    Command{"Look", "explain", "show what lives at a plan's peak, or why it keeps a tensor",
            "ckplan explain plan.json peak", AddExplainOptions, RunExplain},
    Command{"Look", "report", "write an HTML report of a plan, or of several side by side",
            "ckplan report plan.json -o report.html", AddReportOptions, RunReport},
    Command{"Look", "inspect", "show a model's operators, sizes and memory",
            "ckplan inspect resnet50.onnx -D N=64", AddInspectOptions, RunInspect},
    Command{"Look", "diff", "show what changed between two plans", "ckplan diff old.json new.json",
            AddDiffOptions, RunDiff},
    Command{"Use", "check", "verify a plan with an independent checker",
            "ckplan check plan.json resnet50.onnx", AddCheckOptions, RunCheck},
    Command{"Use", "apply", "write a saved plan into its model, or convert it",
            "ckplan apply plan.json resnet50.onnx -o resnet50.planned.onnx", AddApplyOptions,
            RunApply},
    Command{"Use", "modules",
            "list the PyTorch modules to checkpoint for much the same effect as a plan",
            "ckplan modules plan.json resnet18.onnx", AddModulesOptions, RunModules},
    Command{"Reference", "algos", "list the algorithms, with their papers and guarantees",
            "ckplan algos", AddAlgosOptions, RunAlgos},
    Command{"Reference", "devices", "list the device presets for costs and memory",
            "ckplan devices rtx4090", AddDevicesOptions, RunDevices},
    Command{"Reference", "schema", "print the JSON Schema of a file format", "ckplan schema plan",
            AddSchemaOptions, RunSchema},
    Command{"Reference", "graph", "write the graph that is planned, as graph.json or as a picture",
            "ckplan graph resnet50.onnx -D N=64 -o graph.json", AddGraphOptions, RunGraph},
    Command{"Reference", "completion", "print a shell's completion script",
            "source <(ckplan completion bash)", AddCompletionOptions, RunCompletion},
    Command{"Reference", "man", "print the manual page of a command", "ckplan man plan | man -l -",
            AddManOptions, RunMan},
};

constexpr std::string_view kExample = "ckplan resnet50.onnx -D N=64 --budget 60% -o plan.json";
constexpr std::string_view kPurpose =
    "Plans which activations a training step keeps, recomputes or moves to the host, so that\nthe "
    "step fits in memory at the smallest slowdown.";

Screen MakeScreen(const Options& options) {
  Screen screen = DetectScreen(options.color, options.is_quiet, options.has_no_progress);
  screen.is_verbose = options.is_verbose;
  return screen;
}

CommandLine CommandLineOf(const Command& command, Options& options) {
  CommandLine line(fmt::format("ckplan {}", command.name), command.example,
                   Sentence(command.summary));
  command.add_options(line, options);
  {
    const CommandLine::Section section(line, kGlobalSection);
    // main() has read it already, before the first message.
    line.Choice(std::string(kMessagesFlag), {"text", "json"},
                "format of errors, warnings and notes on standard error", &options.messages);
  }
  // All commands that read files. Those that list algorithms or print a page have no settings.
  if (line.HasOption("--memory-limit")) AddConfigOptions(line, options);
  return line;
}

// Adds a command to paste to an error about missing dimensions, or about a list where one value is
// needed.
Error AddExample(const Command& command, const Options& options, Error error) {
  const std::string sizes = SuggestedSizes(options, error);
  if (!sizes.empty()) {
    error.notes.push_back(
        fmt::format("for example: ckplan {}{}", command.name, options.typed.With(sizes)));
  }
  if (error.code != ErrorCode::kUsage || command.name != "plan") return error;
  const std::string comparison = SuggestComparison(options);
  if (!comparison.empty()) error.notes.push_back("for example: ckplan compare" + comparison);
  return error;
}

std::vector<std::string> CommandsWith(const std::string& flag) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    Options options;
    if (CommandLineOf(command, options).HasOption(flag)) {
      names.push_back(fmt::format("ckplan {}", command.name));
    }
  }
  return names;
}

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

Result<ExitCode> RunCommand(const Command& command, std::vector<std::string> arguments) {
  Options options;
  CommandLine line = CommandLineOf(command, options);
  options.typed = TypedArguments(arguments, line.description());
  line.SetElsewhere(CommandsWith);
  CKPLAN_ASSIGN_OR_RETURN(const CommandLine::Outcome outcome, line.Parse(std::move(arguments)));
  if (outcome == CommandLine::Outcome::kHelp) {
    CKPLAN_RETURN_IF_ERROR(MakeScreen(options).PrintHelp(line.Help()));
    return ExitCode::kOk;
  }
  std::vector<ConfiguredValue> configured;
  if (line.HasOption("--config")) {
    CKPLAN_ASSIGN_OR_RETURN(configured, ApplyConfig(std::string(command.name), options, &line));
    options.request.SetOptionalDims(DimsIn(configured));
  }
  const Screen screen = MakeScreen(options);
  if (options.prints_config) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(ConfigText(std::string(command.name), line, configured)));
    return ExitCode::kOk;
  }
  CKPLAN_RETURN_IF_ERROR(LimitMemory(options.memory_limit));
  Result<ExitCode> code = command.run(options, screen);
  if (code.ok()) return code;
  Error error = AddExample(command, options, std::move(code).error());
  return WithOrigins(std::move(error), configured);
}

std::string ProgramHelp() {
  std::string text = fmt::format("Example:\n  {}\n\n{}\n\n", kExample, kPurpose);
  text +=
      "Usage: ckplan COMMAND [options]\n"
      "       ckplan MODEL [options]         short for `ckplan plan MODEL`\n\n"
      "Commands (`ckplan help COMMAND` shows the options of one):\n";
  std::string_view group;
  for (const Command& command : kCommands) {
    if (command.group != group) text += fmt::format("  {}\n", command.group);
    group = command.group;
    text += fmt::format("    {:<10} {}\n", command.name, command.summary);
  }
  text += "\nOptions:\n";
  text += "  -h, --help     show this and exit\n";
  text += "  -V, --version  show the version and exit\n\n";
  return text + ExitCodeLines(kExitCodeMeanings) + "\n";
}

ProgramDescription DescribeProgram() {
  ProgramDescription program;
  program.name = "ckplan";
  program.version = CKPLAN_VERSION;
  program.summary = "plan the memory of a training step";
  program.purpose = kPurpose;
  program.example = kExample;
  program.default_command = kDefaultCommand;
  program.exit_codes = kExitCodeMeanings;
  for (const Command& command : kCommands) {
    Options options;
    program.commands.push_back(CommandLineOf(command, options).description());
  }
  return program;
}

}  // namespace ckplan
