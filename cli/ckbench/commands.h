// The commands of ckbench. Each takes the arguments after its name.
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
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/interval_placement.h"

namespace ckplan {

// Functions that the commands of ckbench share.

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

// Runs the program with all of its arguments; without a command it prints the papers' published
// figures next to ours. kUsage: there is no such command or paper.
Result<ExitCode> RunBench(std::vector<std::string> arguments);

// ckbench kusumoto --graphs DIR: prints Tables 1 and 2 of Kusumoto et al. 2019 next to our figures
// on the authors' own graphs.
Result<ExitCode> RunKusumoto(std::vector<std::string> arguments);

// ckbench arena: measures how well and how fast the intervals of public benchmarks are placed.
Result<ExitCode> RunArena(std::vector<std::string> arguments);
// Parses a benchmark file of minimalloc: the header "id,lower,upper,size", then a line for each
// buffer. kInvalidInput lists all malformed lines, with `path` in the message.
Result<std::vector<LiveInterval>> ParseIntervals(std::string_view text, const std::string& path);

// ckbench graph NETWORK: writes the graph of a network of Chen et al. 2016, section 5, for ckplan.
Result<ExitCode> RunGraph(std::vector<std::string> arguments);
// Returns a network of Fig. 5 or 6: "resnet-DEPTH", at batch 32, or "lstm-STEPS", at batch 64.
Result<TensorGraph> ChenNetwork(std::string_view name);

// ckbench quality and ckbench instances: the time that the algorithm `best` adds at a range of
// budgets, with its bound, compared with the best plan of all other algorithms. The first plans
// models at 90 to 20 % of the keep-all peak and at the minimum; the second plans joint graphs at 90
// to 40 %.
Result<ExitCode> RunQuality(std::vector<std::string> arguments);
Result<ExitCode> RunInstances(std::vector<std::string> arguments);

// ckbench ablate: what `best` loses without each of its techniques, at 70, 50 and 35 % of the
// memory.
Result<ExitCode> RunAblate(std::vector<std::string> arguments);

// ckbench speed: measures how fast plans are simulated, and how fast annealing searches for them.
Result<ExitCode> RunSpeed(std::vector<std::string> arguments);

}  // namespace ckplan
