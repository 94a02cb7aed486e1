// A program as data: what its completions and manual pages are made of. It is filled from the same
// declarations as --help.
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
  // The command that runs where the first word is none.
  std::string default_command;
  std::vector<CommandDescription> commands;
  std::span<const ExitCodeMeaning> exit_codes;
};

// "plan" of "ckplan plan".
std::string WordOf(const CommandDescription& command);

}  // namespace ckplan
