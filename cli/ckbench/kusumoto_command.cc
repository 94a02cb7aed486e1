#include <optional>
#include <string>
#include <vector>

#include "cli/ckbench/commands.h"
#include "cli/ckbench/kusumoto_networks.h"
#include "cli/ckbench/reproduction.h"
#include "cli/common/size_arg.h"

namespace ckplan {

Result<ExitCode> RunKusumoto(std::vector<std::string> arguments) {
  std::optional<std::string> graphs;
  std::optional<std::string> above;
  std::string format = "text";
  CommandLine line(
      "ckbench kusumoto", "ckbench kusumoto --graphs recompute/computational_graphs",
      "Prints Tables 1 and 2 of Kusumoto et al. 2019 next to our results on their graphs.");
  line.Value("--graphs", "DIR", "computational_graphs of github.com/pfnet-research/recompute",
             &graphs);
  line.Value("--above", "P", "budget in percent above the least feasible one (default 5)", &above);
  line.Choice("-f,--format", {"text", "json", "md"}, "output format", &format);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  if (!graphs) {
    return MakeError(
        ErrorCode::kUsage,
        "ckbench kusumoto needs --graphs DIR, the authors' folder computational_graphs");
  }
  int64_t percent_above = kPercentAboveMin;
  if (above) {
    CKPLAN_ASSIGN_OR_RETURN(percent_above, ParseInteger(*above, "--above", 0, 1000));
  }
  Progress progress(screen.shows_progress);
  progress.Stage("reproducing kusumoto");
  CKPLAN_ASSIGN_OR_RETURN(Reproduction reproduction, ReproduceKusumotoOn(*graphs, percent_above));
  progress.Clear();
  const std::vector<Reproduction> all = {std::move(reproduction)};
  CKPLAN_RETURN_IF_ERROR(screen.Print(format == "json" ? ReproductionJson(all)
                                      : format == "md"
                                          ? TablesMarkdown(all)
                                          : ReproductionText(all, screen.out.table_width())));
  return ExitCode::kOk;
}

}  // namespace ckplan
