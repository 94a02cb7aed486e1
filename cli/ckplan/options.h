// All options of all commands of ckplan. An option has the same meaning in every command that
// accepts it. With what was typed, and the limits that commands work under.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/interrupt.h"
#include "cli/common/request_flags.h"
#include "cli/common/terminal.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// The words typed after a command. Messages suggest the same words with as few changes as possible.
class TypedArguments {
 public:
  TypedArguments() = default;
  TypedArguments(const std::vector<std::string>& words, const CommandDescription& command);

  // Returns all words quoted for a shell, each after a blank, with `added` after the last
  // option. `added` starts with a blank: " -D N=8".
  std::string With(std::string_view added) const;
  // Returns the words of these options, named by their long flags: " --memory-limit 2GiB".
  std::string Of(std::initializer_list<std::string_view> flags) const;
  // Removes the words of these options.
  TypedArguments Without(std::initializer_list<std::string_view> flags) const;
  // False if an input is standard input or a pipe: the same command would find it empty.
  bool CanRepeat() const;
  // Returns `stem`.json, or a numbered name if a typed word names that file: "plan2.json".
  std::string NewFile(std::string_view stem) const;

 private:
  struct Item {
    std::string flag;  // The long flag of an option; empty for other arguments.
    std::string text;  // Quoted for a shell: "-D N=8".
    std::string path;  // The file that its value names, if it is one: "costs.json".
  };
  std::vector<Item> items_;
  size_t option_end_ = 0;  // The number of items before "--".
};

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
  std::optional<std::string> runtime;  // The runtime to find a plan for.

  // How to read the model, and how to plan:
  RequestFlags request;
  std::optional<std::string> algorithms;  // For commands that take several algorithms.
  std::optional<std::string> optimizers;  // For commands that take several optimizers.
  std::optional<std::string> time_limit;
  std::optional<std::string> memory_limit;
  bool wants_joint = false;  // Expand the graph into a joint graph.

  // Fitting into a device's memory:
  bool finds_one_size = false;  // One dimension needs no size, because the command searches for it.
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

// Options of every command that reads files: --memory-limit, --color, -q and --no-progress.
void AddCommonOptions(CommandLine& line, Options& options);

// Limits of ckplan's commands: --time-limit, --memory-limit and Ctrl-C.
void AddTimeLimitOption(CommandLine& line, Options& options);

// Returns the value of --time-limit, or nothing if it is not given.
Result<std::optional<std::chrono::milliseconds>> TimeLimitOf(const Options& options);

// The error for a passed time limit; `rest` ends the sentence and says what to do. Without a time
// limit nothing may end like that, so then it is kInternal.
Error TimeLimitPassed(const Options& options, std::string_view rest = "; give more time");

// Returns the result of work under a time limit; its kTimeout says that the limit has passed.
template <typename T>
Result<T> InTime(Result<T> result, const Options& options) {
  if (result.ok() || result.error().code != ErrorCode::kTimeout) return result;
  return TimeLimitPassed(options);
}

// Calls LoadSource; its kTimeout says that the time limit has passed.
Result<Source> LoadInTime(const std::string& path, const PlanRequest& request,
                          const Options& options);

// Reports that Ctrl-C has ended the command.
ExitCode Interrupted();

}  // namespace ckplan
