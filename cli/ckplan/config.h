// Applies ckplan.toml to a command of ckplan, and implements --print-config.
//
// The keys before all sections are planning options, by their long flags; they apply to the
// commands that read a model. A section has the name of a command and may set any of its options.
// Typed options override the section, and the section overrides the keys before all sections. Sizes
// of dimensions and shapes of inputs are overridden one by one, and a budget overrides one of
// another kind.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/common/command_line.h"
#include "lib/base/result.h"

namespace ckplan {

// --config, --no-config and --print-config.
void AddConfigOptions(CommandLine& line, Options& options);

// Returns the configuration file: the one --config names, or the one found.
std::optional<std::string> ConfigFileOf(const Options& options);

// Where the value of an option that was not typed comes from.
struct ConfiguredValue {
  std::string flag;  // "--budget"
  std::vector<std::string> texts;
  std::string where;  // "ckplan.toml:3"
};

// Sets the options that were not typed, after the line was parsed. `command` is the command's word.
// Returns kUsage, with file and line, for an unknown key or a value of the wrong type, and kIo if
// --config names a file that cannot be read.
Result<std::vector<ConfiguredValue>> ApplyConfig(const std::string& command, const Options& options,
                                                 CommandLine* line);

// Like ApplyConfig, but takes the text of a file, which messages call `path`.
Result<std::vector<ConfiguredValue>> ApplyConfigText(std::string_view text, const std::string& path,
                                                     const std::string& command, CommandLine* line);

// Returns the names that were set by a file: lib/files/model/used_settings.h.
std::set<std::string> DimsIn(const std::vector<ConfiguredValue>& configured);

// Lists each option of the command with its value and the value's source, as TOML that can be
// saved.
std::string ConfigText(const std::string& command, const CommandLine& line,
                       const std::vector<ConfiguredValue>& configured);

// Adds to the error a note for each configured value that its message names.
Error WithOrigins(Error error, const std::vector<ConfiguredValue>& configured);

}  // namespace ckplan
