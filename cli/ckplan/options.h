// All options of all commands of ckplan. An option has the same meaning in every command that
// accepts it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckplan/typed_arguments.h"
#include "cli/common/command_line.h"
#include "cli/common/request_flags.h"

namespace ckplan {

struct Options {
  TypedArguments typed;  // The arguments after the command.

  // Inputs:
  std::string source;                // MODEL: a model or a graph.json.
  std::vector<std::string> sources;  // All MODEL arguments, for commands that take several.
  std::string plan;                  // PLAN, or the older of two.
  std::string newer_plan;
  std::vector<std::string> plans;      // All PLAN arguments, for commands that take several.
  std::vector<std::string> models;     // Their models.
  std::string name;                    // Name of the schema to print, or of the device to list.
  std::string what;                    // The subject to explain: "peak" or a name.
  std::optional<std::string> runtime;  // The kind of runtime that a plan is sought for.

  // How to read the model, and how to plan:
  RequestFlags request;
  std::optional<std::string> algorithms;  // For commands that take several algorithms.
  std::optional<std::string> optimizers;  // For commands that take several optimizers.
  std::optional<std::string> time_limit;
  std::optional<std::string> memory_limit;
  bool wants_joint = false;  // Expand the graph into a joint graph.

  // Fitting into a device's memory:
  bool finds_one_size = false;   // One dimension needs no size, because it is sought.
  std::string effort = "quick";  // For commands whose default differs from that of plans.
  std::optional<std::string> added_times;
  std::optional<std::string> multiple_of;

  // Outputs:
  bool has_no_pareto = false;
  std::optional<std::string> output;
  std::vector<std::string> emits;
  std::string format = "text";
  std::string color = "auto";
  std::vector<std::string> fail_on;
  std::optional<std::string> max_peak;  // Short for --fail-on 'peak>SIZE'.
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

// The heading of options that every command has, or nearly every one.
inline constexpr std::string_view kGlobalSection = "Global";

void AddScreenOptions(CommandLine& line, Options& options);  // --color, -q, --no-progress

}  // namespace ckplan
