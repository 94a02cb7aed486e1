// Writes manual pages in roff with the macros of man(7), which every man program reads.
#pragma once

#include <string>

#include "cli/common/program_description.h"

namespace ckplan {

// Returns the page ckplan(1): what the program is, its commands, its exit codes.
std::string ProgramManPage(const ProgramDescription& program);
// Returns a page such as ckplan-plan(1): every option of the command.
std::string CommandManPage(const ProgramDescription& program, const CommandDescription& command);

}  // namespace ckplan
