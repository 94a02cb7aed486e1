#include "cli/ckbench/commands.h"

#include <ctime>
#include <utility>

namespace ckplan {

Screen BenchScreen() { return DetectScreen("auto", /*is_quiet=*/false, /*has_no_progress=*/false); }

Result<std::optional<ExitCode>> ParseOrHelp(CommandLine& line, std::vector<std::string> arguments,
                                            const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const CommandLine::Outcome outcome, line.Parse(std::move(arguments)));
  if (outcome != CommandLine::Outcome::kHelp) return std::optional<ExitCode>();
  CKPLAN_RETURN_IF_ERROR(screen.PrintHelp(line.Help()));
  return std::optional(ExitCode::kOk);
}

Result<Done> PrintTable(const TextTable& table, std::string_view format, const Screen& screen,
                        std::string_view footer) {
  const std::string text =
      format == "md" ? table.Markdown() : table.Text(0, screen.out.table_width());
  return screen.Print(text + std::string(footer));
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace ckplan
