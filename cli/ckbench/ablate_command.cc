// ckbench ablate: what each technique of the algorithm `best` buys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/ckbench/commands.h"
#include "cli/common/request_flags.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/planner/best_search.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/expand.h"

namespace ckplan {
namespace {

constexpr std::array kPercents = {70, 50, 35};

// A technique is switched off by giving it no work.
struct Technique {
  const char* name;
  void (*switch_off)(BestWork* work);
};

constexpr std::array kTechniques = {
    Technique{"all", [](BestWork*) {}},
    Technique{"no programs over moments", [](BestWork* work) { work->programs = 0; }},
    Technique{"no annealing", [](BestWork* work) { work->moves = 0; }},
    Technique{"no evictions", [](BestWork* work) { work->curve.evictions = 0; }},
    Technique{"no cuts at multiples", [](BestWork* work) { work->curve.scaled_cuts = 0; }},
    Technique{"spare reruns stay", [](BestWork* work) { work->curve.drops_spare = false; }},
    Technique{"one moment", [](BestWork* work) { work->curve.moments = 1; }},
    Technique{"the curve alone",
              [](BestWork* work) {
                work->programs = 0;
                work->moves = 0;
              }},
};

struct AblateRequest {
  std::vector<std::string> files;
  RequestFlags flags{Reading::kOperators};
  std::string format = "text";
};

CommandLine AblateCommandLine(AblateRequest* request) {
  CommandLine line("ckbench ablate",
                   "ckbench ablate testdata/models/resnet50.onnx -D N=8 --format md",
                   "Plans with best at 70, 50 and 35 % of the memory, turning off one technique at "
                   "a time, and prints what each is worth.");
  line.Positionals("FILE", "models or graphs", &request->files);
  request->flags.Add(line, "dims");
  request->flags.Add(line, "cost_model");
  request->flags.Add(line, "effort");
  line.Choice("-f,--format", {"text", "md"}, "output format", &request->format);
  return line;
}

// What was found without a technique, over all graphs and budgets. Losses are in per cent of a step
// against the search with all techniques.
struct Found {
  double seconds = 0;
  int lost = 0;  // Budgets for which only the search with all techniques finds a plan.
  std::vector<double> added;
  std::vector<double> bound;
};

BestOutcome OutcomeAt(const Expansion& expansion, int percent, const BestWork& work) {
  BestProblem problem(expansion.graph, {});
  BestOptions options;
  options.budget = problem.curve()->Fastest().peak / 100 * percent;
  options.work = work;
  options.is_order_free = false;
  return SolveBest(&problem, options).value();
}

void AddLosses(const Expansion& expansion, Cost step, const BestWork& work,
               std::array<Found, kTechniques.size()>* found) {
  for (const int percent : kPercents) {
    std::optional<BestOutcome> all;
    for (size_t i = 0; i < kTechniques.size(); ++i) {
      BestWork less = work;
      kTechniques[i].switch_off(&less);
      const double begin = CpuSeconds();
      const BestOutcome outcome = OutcomeAt(expansion, percent, less);
      Found& one = (*found)[i];
      one.seconds += CpuSeconds() - begin;
      if (i == 0) all = outcome;
      if (!all->runs) break;
      const auto share = [&](int64_t cost) {
        return 100 * static_cast<double>(cost) / static_cast<double>(step.count());
      };
      one.bound.push_back(share(all->lower_bound - outcome.lower_bound));
      if (outcome.runs) {
        one.added.push_back(share(outcome.overhead - all->overhead));
      } else {
        ++one.lost;
      }
    }
  }
}

std::string MeanText(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? "" : fmt::format("{:.3f}", sum / static_cast<double>(values.size()));
}

std::string LargestText(const std::vector<double>& values) {
  return values.empty() ? ""
                        : fmt::format("{:.3f}", *std::max_element(values.begin(), values.end()));
}

TextTable TableOf(const std::array<Found, kTechniques.size()>& found) {
  TextTable table;
  table.columns = {{.name = "techniques"},
                   {.name = "CPU s", .is_number = true},
                   {.name = "no plan", .is_number = true},
                   {.name = "added, mean", .is_number = true},
                   {.name = "largest", .is_number = true},
                   {.name = "bound lower by, mean", .is_number = true},
                   {.name = "largest", .is_number = true}};
  for (size_t i = 0; i < kTechniques.size(); ++i) {
    const Found& one = found[i];
    table.rows.push_back({kTechniques[i].name, fmt::format("{:.1f}", one.seconds),
                          std::to_string(one.lost), MeanText(one.added), LargestText(one.added),
                          MeanText(one.bound), LargestText(one.bound)});
  }
  return table;
}

}  // namespace

Result<ExitCode> RunAblate(std::vector<std::string> arguments) {
  AblateRequest request;
  CommandLine line = AblateCommandLine(&request);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest wanted, request.flags.Read());
  std::array<Found, kTechniques.size()> found;
  Progress progress(screen.shows_progress);
  for (const std::string& path : request.files) {
    progress.Stage("planning " + path);
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(path, wanted));
    const TrainingStep step = source.step();
    if (step.is_joint()) {
      return MakeError(ErrorCode::kUsage,
                       path + " is a joint graph; ablate takes models and forward graphs");
    }
    AddLosses(ExpandTensorGraph(step.forward()), step.cost(), WorkOf(wanted.effort), &found);
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(PrintTable(TableOf(found), request.format, screen,
                                    "\nadded, bound: percent of a step, relative to all "
                                    "techniques; at 70, 50 and 35 % of the memory\n"));
  return ExitCode::kOk;
}

}  // namespace ckplan
