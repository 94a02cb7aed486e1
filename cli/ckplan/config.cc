#include "cli/ckplan/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/common/completion.h"
#include "cli/common/config_file.h"
#include "cli/common/message.h"
#include "cli/common/request_flags.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/planning/plan/request_fields.h"

namespace ckplan {
namespace {

using EntryKind = ConfigEntry::Kind;

// These say what one run writes, or where this file is.
constexpr std::string_view kNotInFile[] = {"--help",   "--config", "--no-config", "--print-config",
                                           "--output", "--emit",   kMessagesFlag};

bool IsForFile(const OptionDescription& option) {
  return std::count(std::begin(kNotInFile), std::end(kNotInFile), option.LongFlag()) == 0;
}

// "budget" of "--budget"
std::string KeyOf(const OptionDescription& option) { return option.LongFlag().substr(2); }

const OptionDescription* FindOption(const std::vector<OptionDescription>& options,
                                    const std::string& key) {
  for (const OptionDescription& option : options) {
    if (KeyOf(option) == key && IsForFile(option)) return &option;
  }
  return nullptr;
}

const CommandDescription* FindDescription(const ProgramDescription& program,
                                          const std::string& word) {
  for (const CommandDescription& command : program.commands) {
    if (WordOf(command) == word) return &command;
  }
  return nullptr;
}

Error UnknownKey(const ConfigEntry& entry, const std::vector<OptionDescription>& options) {
  std::vector<std::string> keys;
  for (const OptionDescription& option : options) {
    if (IsForFile(option)) keys.push_back(KeyOf(option));
  }
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  const std::string place = entry.section.empty() ? "" : fmt::format(" in [{}]", entry.section);
  return MakeError(ErrorCode::kUsage, fmt::format("{}: unknown key \"{}\"{}{}", entry.where,
                                                  entry.key, place, DidYouMean(entry.key, names)));
}

bool TakesNames(const OptionDescription& option) {
  return option.form.starts_with("NAME=") || option.form.starts_with("INPUT=") ||
         option.form.starts_with("OP=");
}

// Whether the option takes a value of the kind that the file gives.
Result<Done> CheckKind(const ConfigEntry& entry, const OptionDescription& option) {
  const bool is_flag = option.form.empty();
  const bool may_be_list = option.may_repeat || option.form.find(',') != std::string::npos;
  const char* expected = nullptr;
  if (is_flag != (entry.kind == EntryKind::kTruth))
    expected = is_flag ? "true or false" : "text or a number";
  if (entry.kind == EntryKind::kList && !may_be_list) expected = "one value, not a list";
  if (entry.kind == EntryKind::kTable && !TakesNames(option)) expected = "a value, not a table";
  if (expected == nullptr) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: {} takes {}", entry.where, entry.key, expected));
}

// Relative paths in the file are relative to its folder.
std::string RebasePaths(const std::string& text, const CommandDescription& command,
                        const OptionDescription& option, const std::string& config) {
  const ValueCompletion value = CompletionOf(command, option);
  std::string head;
  for (const std::string_view start : {"file:", "@"}) {
    if (text.starts_with(start)) head = start;
  }
  const size_t contents = text.rfind("=@");
  const bool is_contents = option.form == "INPUT=VALUE" && contents != text.npos;
  if (is_contents) head = text.substr(0, contents + 2);
  const bool is_file =
      value.kind == ValueCompletion::Kind::kFiles || head == "file:" || is_contents;
  const bool is_pattern = option.form.find('@') != std::string::npos && head.empty();
  if (!is_file || is_pattern) return text;
  const std::filesystem::path folder = std::filesystem::path(config).parent_path();
  return head + (folder / text.substr(head.size())).generic_string();
}

std::vector<std::string> TextsFor(const ConfigEntry& entry, const CommandDescription& command,
                                  const OptionDescription& option, const std::string& config) {
  std::vector<std::string> texts;
  for (const std::string& text : entry.texts) {
    texts.push_back(RebasePaths(text, command, option, config));
  }
  if (option.may_repeat || texts.size() <= 1) return texts;
  return {fmt::format("{}", fmt::join(texts, ","))};
}

// "N" of "N=64" and of "N".
std::string_view NameIn(std::string_view text) { return text.substr(0, text.rfind('=')); }

// The rule of an operator contains "=" itself.
std::string_view NameFor(const OptionDescription& option, std::string_view text) {
  return option.form.starts_with("OP=") ? text.substr(0, text.find('=')) : NameIn(text);
}

// Limits from the file hold together with those that are typed, so that a repository's gate cannot
// be lost by typing another one.
bool AddsUp(const OptionDescription& option) { return option.LongFlag() == "--fail-on"; }

// Removes the values that are overridden by others.
std::vector<std::string> Without(std::vector<std::string> texts, const OptionDescription& option,
                                 const std::vector<std::string>& before) {
  if (before.empty()) return texts;
  if (AddsUp(option)) {
    std::erase_if(texts, [&](const std::string& text) {
      return std::find(before.begin(), before.end(), text) != before.end();
    });
    return texts;
  }
  if (!TakesNames(option) || !option.may_repeat) return {};
  std::set<std::string_view> names;
  for (const std::string& text : before) names.insert(NameFor(option, text));
  std::erase_if(texts,
                [&](const std::string& text) { return names.contains(NameFor(option, text)); });
  return texts;
}

// The options that describe the plan.
const CommandDescription& RequestOptions() {
  static const CommandDescription kOptions = [] {
    CommandLine line("", "", "");
    RequestFlags flags;
    for (const RequestFlags::Group group :
         {RequestFlags::Group::kAlgorithm, RequestFlags::Group::kPlanning,
          RequestFlags::Group::kReading}) {
      flags.Add(line, group);
    }
    return line.description();
  }();
  return kOptions;
}

// Whether the keys before all sections apply to this option. They do not for commands that read a
// plan, which has its own request, and for lists of several algorithms.
bool TakesRequest(const CommandDescription& command, const OptionDescription& option) {
  const bool reads_model =
      !command.positionals.empty() && command.positionals.front().name == "MODEL";
  const OptionDescription* const request_option =
      FindOption(RequestOptions().options, KeyOf(option));
  if (!reads_model || request_option == nullptr) return false;
  return option.LongFlag() != "--algo" || option.form == request_option->form;
}

// Checks the whole file, so that every command finds a mistake in any section.
Result<Done> CheckEntries(const ProgramDescription& program, const ConfigFile& file) {
  for (const ConfigEntry& entry : file.entries) {
    const auto& options = entry.section.empty() ? RequestOptions().options
                                                : FindDescription(program, entry.section)->options;
    const OptionDescription* const option = FindOption(options, entry.key);
    if (option == nullptr) return UnknownKey(entry, options);
    CKPLAN_RETURN_IF_ERROR(CheckKind(entry, *option));
  }
  return Done{};
}

bool IsOtherBudget(const std::string& flag, const OptionDescription& option) {
  return flag != option.LongFlag() && IsBudgetFlag(flag) && IsBudgetFlag(option.LongFlag());
}

// Whether the command's section sets another budget in place of this one.
bool SectionHasOtherBudget(const ConfigFile& file, const CommandDescription& command,
                           const OptionDescription& option) {
  return std::any_of(file.entries.begin(), file.entries.end(), [&](const ConfigEntry& entry) {
    return entry.section == WordOf(command) && IsOtherBudget("--" + entry.key, option);
  });
}

std::vector<std::string> CollectTypedFlags(const CommandLine& line) {
  std::vector<std::string> flags;
  for (const OptionDescription& option : line.description().options) {
    if (!line.Typed(option.LongFlag()).empty()) flags.push_back(option.LongFlag());
  }
  return flags;
}

// The values that apply to the option, those of its own section first. A command line has one
// budget, so one of any kind replaces that of a lower level.
std::vector<const ConfigEntry*> EntriesFor(const ConfigFile& file,
                                           const CommandDescription& command,
                                           const OptionDescription& option) {
  std::vector<const ConfigEntry*> entries;
  for (const ConfigEntry& entry : file.entries) {
    if (entry.key == KeyOf(option) && entry.section == WordOf(command)) entries.push_back(&entry);
  }
  if (!TakesRequest(command, option) || SectionHasOtherBudget(file, command, option)) {
    return entries;
  }
  for (const ConfigEntry& entry : file.entries) {
    if (entry.key == KeyOf(option) && entry.section.empty()) entries.push_back(&entry);
  }
  return entries;
}

// Returns the values with their sources: one for each key of a table, otherwise one for all.
std::vector<ConfiguredValue> ValuesOf(const OptionDescription& option, const ConfigEntry& entry,
                                      const std::vector<std::string>& texts) {
  if (entry.where_of.empty()) return {{option.LongFlag(), texts, entry.where}};
  std::vector<ConfiguredValue> values;
  for (size_t i = 0; i < entry.texts.size(); ++i) {
    const auto text = std::find_if(texts.begin(), texts.end(), [&](const std::string& one) {
      return NameFor(option, one) == NameFor(option, entry.texts[i]);
    });
    if (text != texts.end()) values.push_back({option.LongFlag(), {*text}, entry.where_of[i]});
  }
  return values;
}

// Whether the message names the flag without saying which of its named values it means, as
// "leave out --input-shape" does. "--input-shape x: ..." and "--input-shape x=..." mean one.
bool MeansEachValue(const std::string& message, const std::string& flag) {
  for (size_t at = message.find(flag); at != message.npos; at = message.find(flag, at + 1)) {
    const std::string_view rest = std::string_view(message).substr(at + flag.size());
    const size_t end = rest.starts_with(' ') ? rest.find_first_of(":= ", 1) : rest.npos;
    if (end == rest.npos || rest[end] == ' ') return true;
  }
  return false;
}

// Whether an error's message is about the size of this dimension, "N=64", or about all of them.
bool IsAboutDim(const std::string& message, std::string_view name) {
  const auto has = [&](const std::string& text) { return message.find(text) != message.npos; };
  return has(fmt::format("\"{}\"", name)) || has(fmt::format("-D {}=", name)) ||
         has("no open dimension");
}

// Whether an error's message is about the text, which is a value of the option.
bool IsAbout(const std::string& message, const std::string& flag, const std::string& text) {
  const auto has = [&](const std::string& part) { return message.find(part) != message.npos; };
  const bool is_dim = flag == "--dim";
  if (!is_dim && flag != "--input-shape") return has(flag);
  const std::string_view name = NameIn(text);
  if (MeansEachValue(message, flag)) return true;
  if (has(fmt::format("{} {}:", flag, name)) || has(fmt::format("{} {}=", flag, name))) return true;
  return is_dim ? IsAboutDim(message, name) : has(fmt::format("input \"{}\"", name));
}

// ---- --print-config ----

std::string TomlValue(const OptionDescription& option, const std::vector<std::string>& texts) {
  if (option.form.empty()) return texts.empty() ? "false" : "true";
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(TomlText(text));
  if (option.may_repeat) return fmt::format("[{}]", fmt::join(quoted, ", "));
  return quoted.front();
}

// The default of an option without a value: "best" for --algo, nothing for other options.
std::vector<std::string> DefaultTexts(const OptionDescription& option) {
  if (!option.choices.empty()) return {option.choices.front()};
  for (const RequestField& field : RequestFields()) {
    if (FlagOf(std::string(field.name)) != option.LongFlag() || option.form.empty()) continue;
    return TextsOf(field, PlanRequest());
  }
  return {};
}

// "budget = "60%"   # ckplan.toml:3"
std::string ConfigLine(const OptionDescription& option, const CommandLine& line,
                       const std::vector<ConfiguredValue>& configured) {
  std::vector<std::string> texts = line.Typed(option.LongFlag());
  std::string origin = texts.empty() ? "" : "command line";
  for (const ConfiguredValue& value : configured) {
    if (value.flag != option.LongFlag()) continue;
    texts.insert(texts.end(), value.texts.begin(), value.texts.end());
    origin += (origin.empty() ? "" : ", ") + value.where;
  }
  if (origin.empty()) {
    origin = "default";
    texts = DefaultTexts(option);
    if (texts.empty() && !option.form.empty())
      return fmt::format("# {:<40} # not given\n", KeyOf(option));
  }
  const std::string setting = fmt::format("{} = {}", KeyOf(option), TomlValue(option, texts));
  return fmt::format("{:<42} # {}\n", setting, origin);
}

}  // namespace

void AddConfigOptions(CommandLine& line, Options& options) {
  const CommandLine::Section section(line, kGlobalSection);
  line.Value("--config", "FILE",
             "read settings from FILE (default: ckplan.toml here or above, within the repository)",
             &options.config);
  line.Flag("--no-config", "read no settings from a file", &options.has_no_config);
  line.FlagInstead("--print-config", "print every setting and where it comes from, and exit",
                   &options.prints_config);
}

std::optional<std::string> ConfigFileOf(const Options& options) {
  if (options.has_no_config) return std::nullopt;
  return options.config ? options.config : FindConfigFile();
}

Result<std::vector<ConfiguredValue>> ApplyConfig(const std::string& command, const Options& options,
                                                 CommandLine* line) {
  if (options.has_no_config && options.config) {
    return MakeError(ErrorCode::kUsage, "--config and --no-config cannot be combined");
  }
  const std::optional<std::string> path = ConfigFileOf(options);
  if (!path) return std::vector<ConfiguredValue>();
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(*path));
  return ApplyConfigText(text, *path, command, line);
}

Result<std::vector<ConfiguredValue>> ApplyConfigText(std::string_view text, const std::string& path,
                                                     const std::string& command,
                                                     CommandLine* line) {
  static const ProgramDescription program = DescribeProgram();
  const auto is_section = [](const std::string& name) {
    return FindDescription(program, name) != nullptr;
  };
  CKPLAN_ASSIGN_OR_RETURN(const ConfigFile file, ParseConfig(text, path, is_section));
  CKPLAN_RETURN_IF_ERROR(CheckEntries(program, file));
  std::vector<ConfiguredValue> configured;
  const CommandDescription& description = *FindDescription(program, command);
  const std::vector<std::string> typed = CollectTypedFlags(*line);
  for (const OptionDescription& option : description.options) {
    const bool has_other_budget =
        std::any_of(typed.begin(), typed.end(),
                    [&](const std::string& flag) { return IsOtherBudget(flag, option); });
    if (!IsForFile(option) || has_other_budget) continue;
    std::vector<std::string> before = line->Typed(option.LongFlag());
    for (const ConfigEntry* const entry : EntriesFor(file, description, option)) {
      const std::vector<std::string> texts =
          Without(TextsFor(*entry, description, option, file.path), option, before);
      const bool is_off =
          entry->kind == EntryKind::kTruth && texts == std::vector<std::string>{"false"};
      if (texts.empty()) continue;
      const Result<Done> set = line->Set(option.LongFlag(), texts);
      if (!set.ok()) {
        Error error = set.error();
        error.message = fmt::format("{}: {}", entry->where, error.message);
        return error;
      }
      before.insert(before.end(), texts.begin(), texts.end());
      if (is_off) continue;
      for (ConfiguredValue& value : ValuesOf(option, *entry, texts)) {
        configured.push_back(std::move(value));
      }
    }
  }
  return configured;
}

std::set<std::string> DimsIn(const std::vector<ConfiguredValue>& configured) {
  std::set<std::string> names;
  for (const ConfiguredValue& value : configured) {
    const std::string_view text = value.texts.front();
    if (value.flag == "--dim") names.emplace(NameIn(text));
    // See LoadOptions::optional_dims.
    if (value.flag == "--set") names.insert(fmt::format("{}=", NameIn(text)));
    if (value.flag == "--op-shape") {
      names.insert(fmt::format("{}=", text.substr(0, text.find('='))));
    }
  }
  return names;
}

std::string ConfigText(const std::string& command, const CommandLine& line,
                       const std::vector<ConfiguredValue>& configured) {
  std::string request, rest;
  for (const OptionDescription& option : line.description().options) {
    if (!IsForFile(option)) continue;
    const bool is_request = TakesRequest(line.description(), option);
    (is_request ? request : rest) += ConfigLine(option, line, configured);
  }
  return fmt::format("{}{}[{}]\n{}", request, request.empty() ? "" : "\n", command, rest);
}

Error WithOrigins(Error error, const std::vector<ConfiguredValue>& configured) {
  const std::string message = MessageOf(error);
  for (const ConfiguredValue& value : configured) {
    const bool is_about =
        std::any_of(value.texts.begin(), value.texts.end(),
                    [&](const std::string& text) { return IsAbout(message, value.flag, text); });
    if (!is_about) continue;
    error.notes.push_back(
        fmt::format("{} {} is from {}", value.flag, fmt::join(value.texts, " "), value.where));
  }
  return error;
}

}  // namespace ckplan
