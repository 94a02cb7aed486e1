// The commands `completion` and `man`, whose output is made from a program's description.
#pragma once

#include <string>

#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/program_description.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"

namespace ckplan {

void AddShellName(CommandLine& line, std::string* shell);
// Prints the script for a shell (completion.h). kUsage: there is no script for it.
Result<ExitCode> PrintCompletion(const ProgramDescription& program, const std::string& shell,
                                 const Screen& screen);

void AddCommandName(CommandLine& line, std::string* command);
// Prints the page of a command (man_page.h), or of the program itself if `command` is empty.
// kUsage: there is no such command.
Result<ExitCode> PrintManPage(const ProgramDescription& program, const std::string& command,
                              const Screen& screen);

}  // namespace ckplan
