// A program as data, from which its completions and manual pages are made. It is filled from the
// same declarations as --help.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"

namespace ckplan {

struct ProgramDescription {
  std::string name;     // "ckplan"
  std::string version;  // "0.1.0"
  std::string summary;  // What it is, a line without a full stop.
  std::string purpose;  // What it does, in sentences.
  std::string example;  // A command line.
  // The command that runs if the first word names no command.
  std::string default_command;
  std::vector<CommandDescription> commands;
  std::span<const ExitCodeMeaning> exit_codes;
};

// Returns the last word of the command's name: "plan" for "ckplan plan".
std::string WordOf(const CommandDescription& command);

}  // namespace ckplan
