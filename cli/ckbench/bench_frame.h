// What the commands of ckbench share.
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

// As the commands detect it.
Screen BenchScreen();

// Reads the arguments behind the command's name. An exit code if that is all, since they ask for
// help, which has been printed.
Result<std::optional<ExitCode>> ParseOrHelp(CommandLine& line, std::vector<std::string> arguments,
                                            const Screen& screen);

// In the format "text" or "md", with more text behind it.
Result<Done> PrintTable(const TextTable& table, std::string_view format, const Screen& screen,
                        std::string_view behind = "");

// CPU seconds of this process since some moment.
double CpuSeconds();

}  // namespace ckplan
