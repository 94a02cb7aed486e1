#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/ckbench/chainer_run.h"
#include "cli/ckbench/commands.h"
#include "cli/ckbench/kusumoto_networks.h"
#include "cli/ckbench/reproduction.h"
#include "cli/common/size_arg.h"
#include "lib/base/file.h"

namespace ckplan {
namespace {

// Prints what the network needs with a schedule that the authors' program wrote.
Result<ExitCode> PrintPeak(const std::string& graphs, const std::string& name,
                           const std::optional<std::string>& schedule, const Screen& screen) {
  std::vector<std::string> names;
  for (const KusumotoNetwork& network : KusumotoNetworks()) {
    names.emplace_back(network.name);
    if (network.name != name) continue;
    if (!schedule) return MakeError(ErrorCode::kUsage, "--network needs --schedule FILE");
    CKPLAN_ASSIGN_OR_RETURN(const ChainerNetwork file, ReadAuthorsNetwork(graphs, network));
    CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(*schedule));
    CKPLAN_ASSIGN_OR_RETURN(
        const Bytes peak,
        ChainerPeak(WithBatch(file, network.batch, network.graph_batch), text, *schedule));
    const int64_t hundredths = (peak.count() + 5'000'000) / 10'000'000;
    CKPLAN_RETURN_IF_ERROR(
        screen.Print(fmt::format("{}, batch {}: {}.{:02} GB\n", network.name, network.batch,
                                 hundredths / 100, hundredths % 100)));
    return ExitCode::kOk;
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--network must be one of {}", fmt::join(names, ", ")));
}

}  // namespace

Result<ExitCode> RunKusumoto(std::vector<std::string> arguments) {
  std::optional<std::string> graphs;
  std::optional<std::string> step;
  std::optional<std::string> schedule;
  std::optional<std::string> network;
  std::string format = "text";
  CommandLine line(
      "ckbench kusumoto", "ckbench kusumoto --graphs recompute/computational_graphs",
      "Prints Tables 1 and 2 of Kusumoto et al. 2019 next to our results on their graphs.");
  line.Value("--graphs", "DIR", "computational_graphs of github.com/pfnet-research/recompute",
             &graphs);
  line.Value("--budget-step", "MB", "round the least budget up to a multiple of it (default 100)",
             &step);
  line.Value("--schedule", "FILE", "run this schedule of the authors' program instead", &schedule);
  line.Value("--network", "NAME", "the network of the schedule, as in Table 1", &network);
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
  if (schedule || network) return PrintPeak(*graphs, network.value_or(""), schedule, screen);
  int64_t step_mb = kBudgetStepMb;
  if (step) {
    CKPLAN_ASSIGN_OR_RETURN(step_mb, ParseInteger(*step, "--budget-step", 1, 100'000));
  }
  Progress progress(screen.shows_progress);
  progress.Stage("reproducing kusumoto");
  CKPLAN_ASSIGN_OR_RETURN(Reproduction reproduction, ReproduceKusumotoOn(*graphs, step_mb));
  progress.Clear();
  const std::vector<Reproduction> all = {std::move(reproduction)};
  CKPLAN_RETURN_IF_ERROR(screen.Print(format == "json" ? ReproductionJson(all)
                                      : format == "md"
                                          ? TablesMarkdown(all)
                                          : ReproductionText(all, screen.out.table_width())));
  return ExitCode::kOk;
}

}  // namespace ckplan
