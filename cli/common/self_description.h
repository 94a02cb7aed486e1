// The commands that are made of what a program says of itself: `completion` and `man`.
#pragma once

#include <string>

#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/program_description.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"

namespace ckplan {

void AddShellName(CommandLine& line, std::string* shell);
// The script for a shell (completion.h). kUsage: there is none for it.
Result<ExitCode> PrintCompletion(const ProgramDescription& program, const std::string& shell,
                                 const Screen& screen);

void AddCommandName(CommandLine& line, std::string* command);
// The page of a command (man_page.h), of the program itself if `command` is empty. kUsage: it has
// no such command.
Result<ExitCode> PrintManPage(const ProgramDescription& program, const std::string& command,
                              const Screen& screen);

}  // namespace ckplan
