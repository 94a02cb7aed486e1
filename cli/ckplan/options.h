// All options of all commands: a name means the same wherever it is accepted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/command_line.h"

namespace ckplan {

struct Options {
  // What to work on.
  std::string source;                // MODEL: a model or a graph.json.
  std::vector<std::string> sources;  // Likewise, where several are taken.
  std::string plan;                  // PLAN
  std::string name;                  // Of a schema.

  // How to read it.
  std::vector<std::string> dims;
  std::vector<std::string> input_shapes;
  std::optional<std::string> cost;
  std::optional<std::string> autograd;
  std::optional<std::string> activation_type;
  std::optional<std::string> align;

  // What to plan.
  std::optional<std::string> algorithm;
  std::optional<std::string> budget;
  std::optional<std::string> budget_total;
  std::optional<std::string> paper_budget;
  std::string objective = "time";
  std::string granularity = "node";
  std::string optimizer = "sgd";
  bool has_no_liveness = false;
  std::optional<std::string> time_limit;

  // What to write, and how.
  std::optional<std::string> output;
  std::vector<std::string> emits;
  std::string format = "text";
  std::string color = "auto";
  std::vector<std::string> fail_on;
  std::optional<std::string> against;
  std::string annotate = "none";
  bool has_exit_code = false;
  bool is_strict = false;
  bool is_quiet = false;
  bool is_verbose = false;
  bool has_no_progress = false;
};

// Groups of options that several commands share.
void AddSourceOptions(CommandLine& line, Options& options);  // -D to --align
void AddGranularityOption(CommandLine& line, Options& options);
void AddCostOption(CommandLine& line, Options& options);
void AddScreenOptions(CommandLine& line, Options& options);  // --color, -q, --no-progress

}  // namespace ckplan
