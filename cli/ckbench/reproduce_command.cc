#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckbench/commands.h"
#include "cli/ckbench/reproduction.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

struct PaperRow {
  std::string_view key;
  Result<Reproduction> (*reproduce)(const std::string& models);
  Result<FigureTable> (*time)(const std::string& models) = nullptr;  // For --times.
};

constexpr std::array kPapers = {
    PaperRow{"chen", ReproduceChen},
    PaperRow{"feng", ReproduceFeng},
    PaperRow{"hong", ReproduceHong, HongSolverTimeTable},
    PaperRow{"kusumoto", ReproduceKusumoto},
};
constexpr std::string_view kAll = "all";

struct ReproduceRequest {
  std::string paper = std::string(kAll);
  std::optional<std::string> models;
  bool wants_times = false;
  std::string format = "text";
};

Result<Done> CheckPaper(const std::string& paper) {
  std::vector<std::string_view> names;
  for (const PaperRow& row : kPapers) names.push_back(row.key);
  names.push_back(kAll);
  for (const std::string_view name : names) {
    if (name == paper) return Done{};
  }
  return MakeError(ErrorCode::kUsage, "unknown paper " + DescribeUnknownName(paper, names));
}

CommandLine ReproduceCommandLine(ReproduceRequest* request) {
  CommandLine line("ckbench reproduce", "ckbench reproduce feng --format md",
                   "Reproduces the figures of papers, and prints them next to the published ones.");
  line.OptionalPositional("PAPER", "chen, feng, hong, kusumoto or all (default)", &request->paper);
  line.Value("--models", "DIR", "folder of the models (default testdata/models)", &request->models);
  line.Flag("--times", "also time the algorithms of Hong et al. on this machine",
            &request->wants_times);
  line.Choice("-f,--format", {"text", "json", "md"}, "output format", &request->format);
  return line;
}

Result<ExitCode> RunReproduce(std::vector<std::string> arguments) {
  ReproduceRequest request;
  CommandLine line = ReproduceCommandLine(&request);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  if (request.paper.empty()) request.paper = kAll;
  CKPLAN_RETURN_IF_ERROR(CheckPaper(request.paper));
  Progress progress(screen.shows_progress);
  std::vector<Reproduction> reproductions;
  for (const PaperRow& row : kPapers) {
    if (request.paper != kAll && request.paper != row.key) continue;
    progress.Stage(fmt::format("reproducing {}", row.key));
    CKPLAN_ASSIGN_OR_RETURN(Reproduction reproduction,
                            row.reproduce(request.models.value_or("testdata/models")));
    if (request.wants_times && row.time != nullptr) {
      CKPLAN_ASSIGN_OR_RETURN(FigureTable times,
                              row.time(request.models.value_or("testdata/models")));
      reproduction.tables.push_back(std::move(times));
    }
    reproductions.push_back(std::move(reproduction));
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(screen.Print(
      request.format == "json" ? ReproductionJson(reproductions)
      : request.format == "md" ? ReproductionMarkdown(reproductions)
                               : ReproductionText(reproductions, screen.out.table_width())));
  return ExitCode::kOk;
}

struct Command {
  std::string_view name;
  Result<ExitCode> (*run)(std::vector<std::string> arguments);
};

constexpr Command kCommands[] = {{"reproduce", RunReproduce}, {"kusumoto", RunKusumoto},
                                 {"graph", RunGraph},         {"arena", RunArena},
                                 {"quality", RunQuality},     {"instances", RunInstances},
                                 {"ablate", RunAblate},       {"speed", RunSpeed}};

std::string NamesOfCommands() {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<ExitCode> RunBench(std::vector<std::string> typed) {
  const Screen screen;
  std::vector<std::string> arguments = WithoutHelpWord(std::move(typed));
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "-V" || first == "--version") {
    CKPLAN_RETURN_IF_ERROR(screen.Print("ckbench " CKPLAN_VERSION "\n"));
    return ExitCode::kOk;
  }
  if (first == "-h" || first == "--help") return RunReproduce({"--help"});
  const auto* const command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                           [&](const Command& row) { return row.name == first; });
  if (command == std::end(kCommands)) {
    return Error{ErrorCode::kUsage,
                 first.empty()
                     ? "no command given; try ckbench reproduce feng"
                     : fmt::format("unknown command \"{}\"; known: {}", first, NamesOfCommands()),
                 {"run `ckbench COMMAND --help` for details"}};
  }
  arguments.erase(arguments.begin());
  return command->run(std::move(arguments));
}

}  // namespace ckplan
