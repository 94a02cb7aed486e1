// The commands `completion` and `man`, whose output is made from a program's description.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"

namespace ckplan {

// A program as data, from which its completions and manual pages are made. It is filled from the
// same declarations as --help.
struct ProgramDescription {
  std::string name;     // "ckplan"
  std::string version;  // "0.1.0"
  std::string summary;  // What it is, a line without a full stop.
  std::string purpose;  // What it does, in sentences.
  std::string example;  // A command line.
  // The command that runs if the first word isn't a command.
  std::string default_command;
  std::vector<CommandDescription> commands;
  std::span<const ExitCodeMeaning> exit_codes;
};

// Returns the last word of the command's name: "plan" for "ckplan plan".
std::string WordOf(const CommandDescription& command);

void AddShellName(CommandLine& line, std::string* shell);
// Prints the script for a shell (completion.h). kUsage: there is no script for it.
Result<ExitCode> PrintCompletion(const ProgramDescription& program, const std::string& shell,
                                 const Screen& screen);

void AddCommandName(CommandLine& line, std::string* command);
// Prints the page of a command (ProgramManPage, CommandManPage), or of the program itself if
// `command` is empty. kUsage: there is no such command.
Result<ExitCode> PrintManPage(const ProgramDescription& program, const std::string& command,
                              const Screen& screen);

// Writes manual pages in roff with the macros of man(7), which every man program reads.

// Returns the page ckplan(1): what the program is, its commands, its exit codes.
std::string ProgramManPage(const ProgramDescription& program);
// Returns a page such as ckplan-plan(1): every option of the command.
std::string CommandManPage(const ProgramDescription& program, const CommandDescription& command);

}  // namespace ckplan
