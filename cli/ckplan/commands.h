// The table of commands, which serves dispatch, `ckplan --help` and "did you mean".
#pragma once

#include <span>
#include <string_view>

#include "cli/ckplan/options.h"
#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/self_description.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"

namespace ckplan {

struct Command {
  std::string_view group;  // The heading above it in `ckplan --help`: "Plan".
  std::string_view name;
  std::string_view summary;  // One line.
  std::string_view example;  // A command line; the help of the command starts with it.
  void (*add_options)(CommandLine& line, Options& options);
  Result<ExitCode> (*run)(const Options& options, const Screen& screen);
};

std::span<const Command> AllCommands();
const Command* FindCommand(std::string_view name);  // Null if no command has that name.
inline constexpr std::string_view kDefaultCommand = "plan";

// Parses the arguments of a command, and runs it or prints its help.
Result<ExitCode> RunCommand(const Command& command, std::vector<std::string> arguments);

std::string ProgramHelp();
// The program and all its commands, for completions and manual pages.
ProgramDescription DescribeProgram();

// Each command has its own file: apply_command.cc and so on.
void AddAlgosOptions(CommandLine& line, Options& options);
void AddApplyOptions(CommandLine& line, Options& options);
void AddCheckOptions(CommandLine& line, Options& options);
void AddCompareOptions(CommandLine& line, Options& options);
void AddCompletionOptions(CommandLine& line, Options& options);
void AddDevicesOptions(CommandLine& line, Options& options);
void AddDiffOptions(CommandLine& line, Options& options);
void AddExplainOptions(CommandLine& line, Options& options);
void AddFitOptions(CommandLine& line, Options& options);
void AddGraphOptions(CommandLine& line, Options& options);
void AddInspectOptions(CommandLine& line, Options& options);
void AddManOptions(CommandLine& line, Options& options);
void AddModulesOptions(CommandLine& line, Options& options);
void AddParetoOptions(CommandLine& line, Options& options);
void AddPlanOptions(CommandLine& line, Options& options);
void AddReportOptions(CommandLine& line, Options& options);
void AddSchemaOptions(CommandLine& line, Options& options);
Result<ExitCode> RunAlgos(const Options& options, const Screen& screen);
Result<ExitCode> RunApply(const Options& options, const Screen& screen);
Result<ExitCode> RunCheck(const Options& options, const Screen& screen);
Result<ExitCode> RunCompare(const Options& options, const Screen& screen);
Result<ExitCode> RunCompletion(const Options& options, const Screen& screen);
Result<ExitCode> RunDevices(const Options& options, const Screen& screen);
Result<ExitCode> RunDiff(const Options& options, const Screen& screen);
Result<ExitCode> RunExplain(const Options& options, const Screen& screen);
Result<ExitCode> RunFit(const Options& options, const Screen& screen);
Result<ExitCode> RunGraph(const Options& options, const Screen& screen);
Result<ExitCode> RunInspect(const Options& options, const Screen& screen);
Result<ExitCode> RunMan(const Options& options, const Screen& screen);
Result<ExitCode> RunModules(const Options& options, const Screen& screen);
Result<ExitCode> RunPareto(const Options& options, const Screen& screen);
Result<ExitCode> RunPlan(const Options& options, const Screen& screen);
Result<ExitCode> RunReport(const Options& options, const Screen& screen);
Result<ExitCode> RunSchema(const Options& options, const Screen& screen);

}  // namespace ckplan
