// ckplan.toml through the whole program except the actual work: from the file's text to a command's
// settings, and to the output of --print-config.
#include <algorithm>
#include <string>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/config.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/planning/plan/request.h"

namespace ckplan {
namespace {

// A command whose arguments have been parsed.
struct TypedCommand {
  explicit TypedCommand(const Command& command)
      : name(command.name), line("ckplan " + name, command.example, command.summary) {
    command.add_options(line, options);
    takes_config = line.HasOption("--memory-limit");
    if (!takes_config) return;
    AddConfigOptions(line, options);
    std::vector<std::string> arguments;
    for (const PositionalDescription& positional : line.description().positionals) {
      if (!positional.is_optional) arguments.push_back("model.onnx");
    }
    CKPLAN_CHECK(line.Parse(arguments).ok(), "a command needs no options");
  }

  std::string name;
  Options options;
  CommandLine line;
  bool takes_config = false;
};

// The fuzzer invents file names, and "@-" is standard input, which never ends.
bool HasValueFromFile(const std::vector<ConfiguredValue>& configured) {
  return std::any_of(configured.begin(), configured.end(), [](const ConfiguredValue& value) {
    return value.flag == "--decisions" ||
           std::any_of(value.texts.begin(), value.texts.end(), [](const std::string& text) {
             return text.find('@') != std::string::npos || text.starts_with("file:");
           });
  });
}

// The output of --print-config, saved as a file, must give every option the same value.
void CheckPrintedConfig(const Command& command, const TypedCommand& typed,
                        const std::vector<ConfiguredValue>& configured) {
  const std::string printed = ConfigText(typed.name, typed.line, configured);
  TypedCommand again(command);
  const auto applied = ApplyConfigText(printed, "printed.toml", again.name, &again.line);
  CKPLAN_CHECK(applied.ok(), "printed settings can be read: " + applied.error().message);
  for (const OptionDescription& option : typed.line.description().options) {
    const std::string flag = option.LongFlag();
    if (typed.line.Typed(flag).empty()) continue;  // The default is printed as such.
    CKPLAN_CHECK(again.line.Typed(flag) == typed.line.Typed(flag),
                 "a printed setting keeps its value: " + flag);
  }
}

void Apply(const Command& command, std::string_view text) {
  TypedCommand typed(command);
  if (!typed.takes_config) return;
  const auto configured = ApplyConfigText(text, "ckplan.toml", typed.name, &typed.line);
  if (!configured.ok()) {
    const Error& error = configured.error();
    CKPLAN_CHECK(error.code == ErrorCode::kUsage, "invalid settings are a usage error");
    CKPLAN_CHECK(error.message.starts_with("ckplan.toml:"), "an error names the file");
    return;
  }
  if (HasValueFromFile(*configured)) return;
  CheckPrintedConfig(command, typed, *configured);
  const Result<PlanRequest> request = typed.options.request.Read();
  if (request.ok()) return;
  CKPLAN_CHECK(request.error().code == ErrorCode::kUsage, "an invalid value is a usage error");
  CKPLAN_CHECK(!WithOrigins(request.error(), *configured).message.empty(),
               "the error has a message");
}

}  // namespace

// The text's length selects the command, because running all commands for each text would be too
// slow.
void FuzzSettings(FuzzInput input) {
  const auto commands = AllCommands();
  Apply(commands.front(), TextOf(input));
  Apply(commands[input.size() % commands.size()], TextOf(input));
}

}  // namespace ckplan
