#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "cli/ckbench/commands.h"
#include "cli/ckbench/synthetic_graph.h"
#include "cli/common/size_arg.h"
#include "lib/files/emit/json_graph.h"

namespace ckplan {
namespace {

constexpr std::string_view kResidualPrefix = "resnet-";
constexpr std::string_view kLstmPrefix = "lstm-";
constexpr int64_t kFewestLayers = 14;  // One unit in each of the four stages.
constexpr int64_t kMaxLayers = 10'000;
constexpr int64_t kMaxSteps = 1'000;

Result<TensorGraph> ResidualOf(std::string_view depth) {
  CKPLAN_ASSIGN_OR_RETURN(const int64_t layers,
                          ParseInteger(depth, "the depth", kFewestLayers, kMaxLayers));
  return ResidualNetwork(StagesOfDepth(layers), 32, 224);
}

Result<TensorGraph> LstmOf(std::string_view count) {
  CKPLAN_ASSIGN_OR_RETURN(const int64_t steps, ParseInteger(count, "the steps", 1, kMaxSteps));
  return UnrollLstm(4, 1024, 50, 5000, 64, steps);
}

}  // namespace

Result<TensorGraph> ChenNetwork(std::string_view name) {
  if (name.starts_with(kResidualPrefix)) return ResidualOf(name.substr(kResidualPrefix.size()));
  if (name.starts_with(kLstmPrefix)) return LstmOf(name.substr(kLstmPrefix.size()));
  return MakeError(ErrorCode::kUsage,
                   fmt::format("unknown network \"{}\"; give resnet-DEPTH or lstm-STEPS, "
                               "such as resnet-1001 or lstm-64",
                               name));
}

Result<ExitCode> RunGraph(std::vector<std::string> arguments) {
  std::string network;
  CommandLine line("ckbench graph", "ckbench graph resnet-1001 > graph.json",
                   "Prints the graph of a network of Chen et al. 2016 for ckplan.");
  line.Positional("NETWORK", "resnet-DEPTH or lstm-STEPS", &network);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph graph, ChenNetwork(network));
  CKPLAN_RETURN_IF_ERROR(screen.Print(WriteGraphJson(graph)));
  return ExitCode::kOk;
}

}  // namespace ckplan
