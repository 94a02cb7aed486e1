// ckplan.toml for the commands of ckplan: what of it applies to one of them, and --print-config.
//
// What stands before all sections are options that ask for a plan, by their long flags; it applies
// to the commands that read a model. A section has the name of a command, and any of its options.
// What is typed goes before a section, and that before what stands before all sections; sizes of
// dimensions and shapes of inputs are taken one by one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/common/command_line.h"
#include "lib/base/result.h"

namespace ckplan {

// --config, --no-config and --print-config.
void AddConfigOptions(CommandLine& line, Options& options);

// Where a value of an option comes from, if it was not typed.
struct ConfiguredValue {
  std::string flag;  // "--budget"
  std::vector<std::string> texts;
  std::string where;  // "ckplan.toml:3"
};

// Sets the options that were not typed, after the line was parsed. `command` is the command's word.
// kUsage, with file and line: an unknown key, a value of the wrong type. kIo: --config names a file
// that cannot be read.
Result<std::vector<ConfiguredValue>> ApplyConfig(const std::string& command, const Options& options,
                                                 CommandLine* line);

// As ApplyConfig, from the text of a file, which messages call `path`.
Result<std::vector<ConfiguredValue>> ApplyConfigText(std::string_view text, const std::string& path,
                                                     const std::string& command, CommandLine* line);

// Each option of the command with its value and where that comes from, as TOML that can be saved.
std::string ConfigText(const std::string& command, const CommandLine& line,
                       const std::vector<ConfiguredValue>& configured);

// The error with a note for each configured value that its message names.
Error WithOrigins(Error error, const std::vector<ConfiguredValue>& configured);

}  // namespace ckplan
