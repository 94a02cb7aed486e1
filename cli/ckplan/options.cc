#include "cli/ckplan/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/common/files.h"
#include "cli/common/size_arg.h"
#include "lib/files/input/load_source.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

bool TakesValue(const OptionDescription& option) {
  return !option.form.empty() || !option.choices.empty();
}

const OptionDescription* OptionOf(const CommandDescription& command, const std::string& flag) {
  for (const OptionDescription& option : command.options) {
    const std::vector<std::string> flags = option.EachFlag();
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) return &option;
  }
  return nullptr;
}

// Finds the option that ends a word, which may hold several: "-qv", "-qo". Sets whether its value
// is the next word.
const OptionDescription* LastOptionIn(const CommandDescription& command, const std::string& word,
                                      bool* is_value_next) {
  if (word.starts_with("--")) {
    const OptionDescription* const option = OptionOf(command, word.substr(0, word.find('=')));
    *is_value_next = option != nullptr && TakesValue(*option) && word.find('=') == word.npos;
    return option;
  }
  const OptionDescription* option = nullptr;
  for (size_t i = 1; i < word.size(); ++i) {
    option = OptionOf(command, fmt::format("-{}", word[i]));
    if (option == nullptr || TakesValue(*option)) {
      *is_value_next = option != nullptr && i + 1 == word.size();
      break;
    }
  }
  return option;
}

// The file in a value such as "file:costs.json", "@names.txt" or "json=plan.json".
std::string PathIn(const std::string& value) {
  std::error_code none;  // Text that cannot be a path names no file.
  return fs::exists(value, none) ? value : value.substr(value.find_last_of("=:@") + 1);
}

bool IsReadOnce(const std::string& path) {
  if (path == "-") return true;
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  return fs::is_fifo(status) || fs::is_character_file(status) || fs::is_socket(status);
}

bool IsOutput(std::string_view flag) { return flag == "--output" || flag == "--emit"; }

}  // namespace

TypedArguments::TypedArguments(const std::vector<std::string>& words,
                               const CommandDescription& command) {
  bool has_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (has_ended || word == "-" || !word.starts_with('-')) {
      items_.push_back({"", ShellWord(word), word});
    } else if (word == "--") {
      has_ended = true;
      items_.push_back({"--", word, ""});
      continue;
    } else {
      bool is_value_next = false;
      const OptionDescription* const option = LastOptionIn(command, word, &is_value_next);
      Item item{option == nullptr ? "" : option->LongFlag(), ShellWord(word), ""};
      const bool is_valued = option != nullptr && TakesValue(*option);
      if (is_valued && is_value_next && i + 1 < words.size()) {
        item.text += " " + ShellWord(words[++i]);
        item.path = PathIn(words[i]);
      } else if (is_valued) {
        item.path = PathIn(word.starts_with("--") ? word : word.substr(2));
      }
      items_.push_back(std::move(item));
    }
    if (!has_ended) option_end_ = items_.size();
  }
}

std::string TypedArguments::With(std::string_view added) const {
  std::string text;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i == option_end_) text += added;
    text += " " + items_[i].text;
  }
  if (option_end_ == items_.size()) text += added;
  return text;
}

std::string TypedArguments::Of(std::initializer_list<std::string_view> flags) const {
  std::string text;
  for (const Item& item : items_) {
    const bool is_asked = std::find(flags.begin(), flags.end(), item.flag) != flags.end();
    if (is_asked) text += " " + item.text;
  }
  return text;
}

TypedArguments TypedArguments::Without(std::initializer_list<std::string_view> flags) const {
  TypedArguments rest;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (std::find(flags.begin(), flags.end(), items_[i].flag) != flags.end()) continue;
    rest.items_.push_back(items_[i]);
    if (i < option_end_) rest.option_end_ = rest.items_.size();
  }
  return rest;
}

bool TypedArguments::CanRepeat() const {
  return std::none_of(items_.begin(), items_.end(), [](const Item& item) {
    return !item.path.empty() && !IsOutput(item.flag) && IsReadOnce(item.path);
  });
}

std::string TypedArguments::NewFile(std::string_view stem) const {
  std::vector<std::string> paths;
  for (const Item& item : items_) paths.push_back(item.path);
  return NewJsonFile(stem, paths);
}

void AddCommonOptions(CommandLine& line, Options& options) {
  const CommandLine::Section section(line, kGlobalSection);
  line.Value(
      "--memory-limit", "SIZE",
      "limit on the memory that ckplan itself uses (default: three quarters of what is free)",
      &options.memory_limit);
  line.Choice("--color", {"auto", "always", "never"}, "when to color text", &options.color);
  line.Flag("-q,--quiet", "print only errors and requested output", &options.is_quiet);
  line.Flag("--no-progress", "show no progress on a terminal", &options.has_no_progress);
}

void AddTimeLimitOption(CommandLine& line, Options& options) {
  line.Value("--time-limit", "TIME", "give up after 60s, 500ms, 5min (exit code 5)",
             &options.time_limit);
}

Result<std::optional<std::chrono::milliseconds>> TimeLimitOf(const Options& options) {
  std::optional<std::chrono::milliseconds> limit;
  if (options.time_limit) {
    CKPLAN_ASSIGN_OR_RETURN(limit, ParseDuration(*options.time_limit, "--time-limit"));
  }
  return limit;
}

Error TimeLimitPassed(const Options& options, std::string_view rest) {
  if (!options.time_limit) {
    return MakeError(ErrorCode::kInternal,
                     "a search gave up without a time limit; please report it");
  }
  return MakeError(ErrorCode::kTimeout,
                   fmt::format("the time limit of {} passed{}", *options.time_limit, rest));
}

Result<Source> LoadInTime(const std::string& path, const PlanRequest& request,
                          const Options& options) {
  Result<Source> source = LoadSource(path, request);
  if (source.ok() || source.error().code != ErrorCode::kTimeout) return source;
  return TimeLimitPassed(options, fmt::format(" while reading \"{}\"; give more time", path));
}

ExitCode Interrupted() {
  constexpr ExitCode kCode = ExitCode::kInterrupted;
  PrintError(MakeError(ErrorCode::kTimeout, "interrupted; nothing was written"), "ckplan", kCode);
  return kCode;
}

}  // namespace ckplan
