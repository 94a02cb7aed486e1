// Manual pages in roff, by the macros of man(7), which every man reads.
#pragma once

#include <string>

#include "cli/common/program_description.h"

namespace ckplan {

// ckplan(1): what the program is, its commands, its exit codes.
std::string ProgramManPage(const ProgramDescription& program);
// ckplan-plan(1): every option of the command.
std::string CommandManPage(const ProgramDescription& program, const CommandDescription& command);

}  // namespace ckplan
