// All options of all commands: a name means the same wherever it is accepted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/request_flags.h"

namespace ckplan {

struct Options {
  // What to work on.
  std::string source;                // MODEL: a model or a graph.json.
  std::vector<std::string> sources;  // All of them, for commands that take several.
  std::string plan;                  // PLAN
  std::string name;                  // Which schema to print.

  // How to read it, and what to plan.
  RequestFlags request;
  std::optional<std::string> algorithms;  // Where several are named.
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

void AddScreenOptions(CommandLine& line, Options& options);  // --color, -q, --no-progress

}  // namespace ckplan
