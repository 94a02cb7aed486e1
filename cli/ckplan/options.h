// All options of all commands of ckplan. An option has the same meaning in every command that
// accepts it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/request_flags.h"

namespace ckplan {

struct Options {
  // What to work on:
  std::string source;                // MODEL: a model or a graph.json.
  std::vector<std::string> sources;  // All MODEL arguments, for commands that take several.
  std::string plan;                  // PLAN, or the older of two.
  std::string newer_plan;
  std::vector<std::string> plans;   // All PLAN arguments, for commands that take several.
  std::vector<std::string> models;  // Their models.
  std::string name;                 // Name of the schema to print, or of the device to list.
  std::string what;                 // To explain: "peak", or a name.

  // How to read the model, and what to plan:
  RequestFlags request;
  std::optional<std::string> algorithms;  // For commands that take several algorithms.
  std::optional<std::string> optimizers;  // Likewise.
  std::optional<std::string> time_limit;
  std::optional<std::string> memory_limit;
  bool wants_joint = false;  // The graph expanded into a joint graph.

  // What is to fit, and into what:
  std::string effort = "quick";        // For commands whose default is not that of plans.
  std::optional<std::string> memory;   // A size, or a device preset.
  std::optional<std::string> reserve;  // What of it the step may not use.
  std::optional<std::string> added_times;
  std::optional<std::string> multiple_of;

  // What to write, and how:
  bool has_no_pareto = false;
  std::optional<std::string> output;
  std::vector<std::string> emits;
  std::string format = "text";
  std::string color = "auto";
  std::vector<std::string> fail_on;
  std::optional<std::string> against;
  std::string annotate = "none";
  std::optional<std::string> config;
  bool has_no_config = false;
  bool prints_config = false;
  bool has_exit_code = false;
  bool is_strict = false;
  bool is_quiet = false;
  bool is_verbose = false;
  bool has_no_progress = false;
  std::string messages = "text";
};

void AddScreenOptions(CommandLine& line, Options& options);  // --color, -q, --no-progress

}  // namespace ckplan
