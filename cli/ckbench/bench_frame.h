// Functions that the commands of ckbench share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/result.h"

namespace ckplan {

// Returns the screen as the commands detect it.
Screen BenchScreen();

// Parses the arguments after the command's name. Returns an exit code if they ask for help, which
// has then been printed.
Result<std::optional<ExitCode>> ParseOrHelp(CommandLine& line, std::vector<std::string> arguments,
                                            const Screen& screen);

// Prints the table in the format "text" or "md", with more text after it.
Result<Done> PrintTable(const TextTable& table, std::string_view format, const Screen& screen,
                        std::string_view footer = "");

// Returns the CPU seconds of this process since some fixed moment.
double CpuSeconds();

}  // namespace ckplan
