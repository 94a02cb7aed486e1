#include "cli/common/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "lib/base/nearest_name.h"

namespace ckplan {
namespace {

// CLI11's help, but with the usage line of our own.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string* usage) : usage_(*usage) { column_width(34); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return fmt::format("Usage: {}\n", usage_);
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    const size_t comma = name.find(",--");
    if (comma != std::string::npos) name.insert(comma + 1, " ");
    return name;
  }

 private:
  const std::string& usage_;
};

}  // namespace

std::string Sentence(std::string_view summary) {
  std::string text = fmt::format("{}.", summary);
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string ShellWord(std::string_view word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./+:,@%=-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

struct CommandLine::State {
  CLI::App app;
  std::string name;
  std::string usage;
  std::vector<std::string> flags;  // All long and short names, for "did you mean".
  struct Needed {
    std::string name;
    const std::string* value = nullptr;
    const std::vector<std::string>* values = nullptr;
  };
  std::vector<Needed> needed;
  std::function<std::vector<std::string>(const std::string& flag)> elsewhere;
  std::optional<Error> fault;  // A Choice's error, found while CLI11 parses.

  std::string HelpHint() const { return fmt::format("`{} --help` shows all options", name); }

  void Remember(const std::string& names) {
    for (const std::string& flag : CLI::detail::split(names, ',')) flags.push_back(flag);
  }
};

CommandLine::CommandLine(std::string name, std::string_view example, std::string_view summary)
    : state_(std::make_unique<State>()) {
  state_->name = name;
  state_->usage = std::move(name) + " [options]";
  CLI::App& app = state_->app;
  app.description(fmt::format("Example:\n  {}\n\n{}\n", example, summary));
  app.formatter(std::make_shared<HelpFormatter>(&state_->usage));
  app.set_help_flag("-h,--help", "show this and exit");
  app.allow_extras();
  state_->Remember("-h,--help");
}

CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

void CommandLine::Positional(const std::string& name, std::string_view help, std::string* value) {
  OptionalPositional(name, help, value);
  state_->usage.erase(state_->usage.size() - name.size() - 3);
  state_->usage += " " + name;
  state_->needed.push_back({name, value, nullptr});
}

void CommandLine::OptionalPositional(const std::string& name, std::string_view help,
                                     std::string* value) {
  state_->app.add_option(name, *value, std::string(help))->option_text(" ");
  state_->usage += fmt::format(" [{}]", name);
}

void CommandLine::Positionals(const std::string& name, std::string_view help,
                              std::vector<std::string>* values) {
  state_->app.add_option(name, *values, std::string(help))->option_text("...");
  state_->usage += fmt::format(" {}...", name);
  state_->needed.push_back({name, nullptr, values});
}

void CommandLine::Value(const std::string& flags, std::string_view form, std::string_view help,
                        std::optional<std::string>* value) {
  const auto set = [value](const std::string& text) { *value = text; };
  state_->app.add_option_function<std::string>(flags, set, std::string(help))
      ->option_text(std::string(form));
  state_->Remember(flags);
}

void CommandLine::List(const std::string& flags, std::string_view form, std::string_view help,
                       std::vector<std::string>* values) {
  state_->app.add_option(flags, *values, std::string(help))
      ->option_text(std::string(form))
      ->allow_extra_args(false);
  state_->Remember(flags);
}

void CommandLine::Choice(const std::string& flags, std::vector<std::string> choices,
                         std::string_view help, std::string* value) {
  *value = choices.front();
  const std::string form = fmt::format("{}", fmt::join(choices, "|"));
  const auto set = [this_state = state_.get(), value, choices, flags](const std::string& text) {
    *value = text;
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return;
    const std::vector<std::string_view> names(choices.begin(), choices.end());
    this_state->fault =
        MakeError(ErrorCode::kUsage,
                  fmt::format("{}: \"{}\" is none of {}{}", flags.substr(flags.rfind("--")), text,
                              fmt::join(choices, ", "), DidYouMean(text, names)));
  };
  state_->app.add_option_function<std::string>(flags, set, std::string(help))->option_text(form);
  state_->Remember(flags);
}

void CommandLine::Flag(const std::string& flags, std::string_view help, bool* value) {
  state_->app.add_flag(flags, *value, std::string(help));
  state_->Remember(flags);
}

void CommandLine::Footer(std::string_view text) { state_->app.footer(std::string(text)); }

Error CommandLine::Unknown(const std::string& argument) const {
  const bool is_flag = argument.size() > 1 && argument[0] == '-';
  if (!is_flag) {
    return {ErrorCode::kUsage,
            fmt::format("\"{}\" is one argument too many", argument),
            {state_->HelpHint()}};
  }
  const bool is_short = argument[1] != '-';  // Its value may follow at once.
  const std::string flag = argument.substr(0, is_short ? 2 : argument.find('='));
  const std::vector<std::string> others =
      state_->elsewhere ? state_->elsewhere(flag) : std::vector<std::string>();
  if (!others.empty()) {
    return {ErrorCode::kUsage,
            fmt::format("`{}` has no option \"{}\"; it belongs to {}", state_->name, flag,
                        fmt::join(others, ", ")),
            {state_->HelpHint()}};
  }
  const std::vector<std::string_view> names(state_->flags.begin(), state_->flags.end());
  return {ErrorCode::kUsage,
          fmt::format("unknown option \"{}\"{}", flag, DidYouMean(flag, names)),
          {state_->HelpHint()}};
}

bool CommandLine::HasOption(const std::string& flag) const {
  return std::find(state_->flags.begin(), state_->flags.end(), flag) != state_->flags.end();
}

void CommandLine::SetElsewhere(
    std::function<std::vector<std::string>(const std::string& flag)> elsewhere) {
  state_->elsewhere = std::move(elsewhere);
}

std::vector<std::string> WithoutHelpWord(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.insert(arguments.begin() + (arguments.empty() ? 0 : 1), "--help");
  return arguments;
}

Result<CommandLine::Outcome> CommandLine::Parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back.
  try {
    state_->app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return Outcome::kHelp;
  } catch (const CLI::ArgumentMismatch& fault) {
    const std::string text = fault.what();  // "--algo: ..."
    return Error{
        ErrorCode::kUsage,
        fmt::format("{} takes one value, and may stand once", text.substr(0, text.find(':'))),
        {state_->HelpHint()}};
  } catch (const CLI::Error& fault) {
    return Error{ErrorCode::kUsage, fault.what(), {state_->HelpHint()}};
  }
  if (state_->fault) return *state_->fault;
  const std::vector<std::string> unknown = state_->app.remaining();
  if (!unknown.empty()) return Unknown(unknown.front());
  for (const State::Needed& needed : state_->needed) {
    const bool is_given =
        needed.value != nullptr ? !needed.value->empty() : !needed.values->empty();
    if (is_given) continue;
    return Error{
        ErrorCode::kUsage, fmt::format("{} is missing", needed.name), {state_->HelpHint()}};
  }
  return Outcome::kRun;
}

std::string CommandLine::Help() const { return state_->app.help(); }

}  // namespace ckplan
