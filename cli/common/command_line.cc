#include "cli/common/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <span>

#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr std::string_view kDefaultSection = "Options";

// CLI11's help with our own usage line.
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

std::string PathWord(const std::string& path) {
  return ShellWord(path.starts_with('-') ? "./" + path : path);
}

std::string OptionDescription::LongFlag() const { return flags.substr(flags.rfind("--")); }

std::vector<std::string> OptionDescription::EachFlag() const {
  return CLI::detail::split(flags, ',');
}

struct CommandLine::State {
  CLI::App app;
  CommandDescription description;
  struct Needed {
    std::string name;
    const std::string* value = nullptr;
    const std::vector<std::string>* values = nullptr;
  };
  std::vector<Needed> needed;
  std::string section{kDefaultSection};
  std::vector<const bool*> instead;  // Flags with which no positional argument is needed.
  // For each option, in the order of the description: CLI11's object, and how the option is set.
  struct Setter {
    const CLI::Option* option = nullptr;
    std::function<Result<Done>(const std::string& text)> set;
  };
  std::vector<Setter> setters;
  std::function<std::vector<std::string>(const std::string& flag)> elsewhere;
  std::optional<Error> fault;  // A Choice's error, found while CLI11 parses.

  std::string HelpHint() const {
    return fmt::format("`{} --help` shows all options", description.name);
  }

  // All long and short names, for "did you mean".
  std::vector<std::string> Flags() const {
    std::vector<std::string> flags;
    for (const OptionDescription& option : description.options) {
      for (std::string& flag : option.EachFlag()) flags.push_back(std::move(flag));
    }
    return flags;
  }

  void Remember(OptionDescription option, CLI::Option* declared, Setter setter) {
    declared->group(section);
    option.section = section;
    description.options.push_back(std::move(option));
    setters.push_back(std::move(setter));
  }

  size_t NumberOf(const std::string& flag) const {
    for (size_t i = 0; i < description.options.size(); ++i) {
      if (description.options[i].LongFlag() == flag) return i;
    }
    CKPLAN_CHECK(false, "an option is asked for by a flag that its command has");
    return 0;
  }
};

CommandLine::CommandLine(std::string name, std::string_view example, std::string_view summary)
    : state_(std::make_unique<State>()) {
  CommandDescription& description = state_->description;
  description.usage = name + " [options]";
  description.name = std::move(name);
  description.example = example;
  description.summary = summary;
  CLI::App& app = state_->app;
  app.description(fmt::format("Example:\n  {}\n\n{}\n", example, summary));
  app.formatter(std::make_shared<HelpFormatter>(&description.usage));
  CLI::Option* const help = app.set_help_flag("-h,--help", "show this and exit");
  app.allow_extras();
  state_->Remember({"-h,--help", "", {}, "show this and exit"}, help,
                   {help, [](const std::string&) -> Result<Done> { return Done{}; }});
}

CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

CommandLine::Section::Section(CommandLine& line, std::string_view heading)
    : line_(line), before_(line.state_->section) {
  if (before_ != kDeprecated) line.state_->section = heading;
}

CommandLine::Section::~Section() { line_.state_->section = before_; }

std::vector<OptionDescription> CommandDescription::Shown() const {
  std::vector<OptionDescription> shown;
  for (const OptionDescription& option : options) {
    if (option.section != CommandLine::kDeprecated) shown.push_back(option);
  }
  return shown;
}

void CommandLine::Positional(const std::string& name, std::string_view help, std::string* value) {
  OptionalPositional(name, help, value);
  CommandDescription& description = state_->description;
  description.positionals.back().is_optional = false;
  description.usage.erase(description.usage.size() - name.size() - 3);
  description.usage += " " + name;
  state_->needed.push_back({name, value, nullptr});
}

void CommandLine::OptionalPositional(const std::string& name, std::string_view help,
                                     std::string* value) {
  state_->app.add_option(name, *value, std::string(help))->option_text(" ");
  state_->description.usage += fmt::format(" [{}]", name);
  state_->description.positionals.push_back({name, std::string(help), /*is_optional=*/true});
}

void CommandLine::Positionals(const std::string& name, std::string_view help,
                              std::vector<std::string>* values) {
  state_->app.add_option(name, *values, std::string(help))->option_text("...");
  state_->description.usage += fmt::format(" {}...", name);
  state_->description.positionals.push_back(
      {name, std::string(help), /*is_optional=*/false, /*may_repeat=*/true});
  state_->needed.push_back({name, nullptr, values});
}

void CommandLine::Value(const std::string& flags, std::string_view form, std::string_view help,
                        std::optional<std::string>* value) {
  const auto set = [value](const std::string& text) { *value = text; };
  CLI::Option* const option =
      state_->app.add_option_function<std::string>(flags, set, std::string(help))
          ->option_text(std::string(form));
  state_->Remember({flags, std::string(form), {}, std::string(help)}, option,
                   {option, [set](const std::string& text) -> Result<Done> {
                      set(text);
                      return Done{};
                    }});
}

void CommandLine::List(const std::string& flags, std::string_view form, std::string_view help,
                       std::vector<std::string>* values) {
  CLI::Option* const option = state_->app.add_option(flags, *values, std::string(help))
                                  ->option_text(std::string(form))
                                  ->allow_extra_args(false);
  state_->Remember({flags, std::string(form), {}, std::string(help), /*may_repeat=*/true}, option,
                   {option, [values](const std::string& text) -> Result<Done> {
                      values->push_back(text);
                      return Done{};
                    }});
}

void CommandLine::Choice(const std::string& flags, std::vector<std::string> choices,
                         std::string_view help, std::string* value, ChoiceExtras extras) {
  *value = choices.front();
  const std::string form = fmt::format("{}", fmt::join(choices, "|"));
  const auto has = [](const std::vector<std::string>& words, const std::string& text) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  const auto set = [value, extras, choices, flags, has](const std::string& text) -> Result<Done> {
    *value = text;
    if (extras.is_typed != nullptr) *extras.is_typed = true;
    if (has(choices, text) || has(extras.older, text)) return Done{};
    const std::vector<std::string_view> names(choices.begin(), choices.end());
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: \"{}\" is not one of {}{}", flags.substr(flags.rfind("--")),
                                 text, fmt::join(choices, ", "), DidYouMean(text, names)));
  };
  const auto parse = [this_state = state_.get(), set](const std::string& text) {
    const Result<Done> done = set(text);
    if (!done.ok()) this_state->fault = done.error();
  };
  CLI::Option* const option =
      state_->app.add_option_function<std::string>(flags, parse, std::string(help))
          ->option_text(form);
  state_->Remember({flags, form, choices, std::string(help)}, option, {option, set});
}

void CommandLine::Flag(const std::string& flags, std::string_view help, bool* value) {
  CLI::Option* const option = state_->app.add_flag(flags, *value, std::string(help));
  state_->Remember({flags, "", {}, std::string(help)}, option,
                   {option, [value](const std::string& text) -> Result<Done> {
                      *value = text == "true";
                      return Done{};
                    }});
}

void CommandLine::FlagInstead(const std::string& flags, std::string_view help, bool* value) {
  Flag(flags, help, value);
  state_->instead.push_back(value);
}

void CommandLine::Footer(std::string_view text) { state_->app.footer(std::string(text)); }

Error CommandLine::Unknown(const std::string& argument) const {
  const bool is_flag = argument.size() > 1 && argument[0] == '-';
  if (!is_flag) {
    const bool is_size = HasOption("--dim") && argument.find('=') != std::string::npos;
    return {ErrorCode::kUsage,
            fmt::format("unexpected argument \"{}\"{}", argument,
                        is_size ? "; did you mean \"-D " + argument + "\"?" : ""),
            {state_->HelpHint()}};
  }
  const bool is_short = argument[1] != '-';  // Its value may follow at once.
  const std::string flag = argument.substr(0, is_short ? 2 : argument.find('='));
  const std::string_view advice = AdviceOnFlag(flag);
  const std::vector<std::string> others =
      state_->elsewhere ? state_->elsewhere(flag) : std::vector<std::string>();
  if (others.empty() && !advice.empty()) {
    return {ErrorCode::kUsage,
            fmt::format("unknown option \"{}\"; {}", flag, advice),
            {state_->HelpHint()}};
  }
  if (!others.empty()) {
    return {ErrorCode::kUsage,
            fmt::format("`{}` has no option \"{}\"; it belongs to {}", state_->description.name,
                        flag, fmt::join(others, ", ")),
            {state_->HelpHint()}};
  }
  const std::vector<std::string> flags = state_->Flags();
  const std::vector<std::string_view> names(flags.begin(), flags.end());
  return {ErrorCode::kUsage,
          fmt::format("unknown option \"{}\"{}", flag, DidYouMean(flag, names)),
          {state_->HelpHint()}};
}

bool CommandLine::HasOption(const std::string& flag) const {
  const std::vector<std::string> flags = state_->Flags();
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
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
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes arguments from the back.
  try {
    state_->app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return Outcome::kHelp;
  } catch (const CLI::ArgumentMismatch& fault) {
    const std::string text = fault.what();  // "--algo: ..."
    return Error{ErrorCode::kUsage,
                 fmt::format("{} takes one value and may be given only once",
                             text.substr(0, text.find(':'))),
                 {state_->HelpHint()}};
  } catch (const CLI::Error& fault) {
    return Error{ErrorCode::kUsage, fault.what(), {state_->HelpHint()}};
  }
  if (state_->fault) return *state_->fault;
  std::vector<std::string> unknown = state_->app.remaining();
  // CLI11 also keeps the "--" after which arguments are not options.
  if (const auto end = std::find(unknown.begin(), unknown.end(), "--"); end != unknown.end()) {
    unknown.erase(end);
  }
  if (!unknown.empty()) return Unknown(unknown.front());
  for (const bool* const is_set : state_->instead) {
    if (*is_set) return Outcome::kRun;
  }
  for (const State::Needed& needed : state_->needed) {
    const bool is_given =
        needed.value != nullptr ? !needed.value->empty() : !needed.values->empty();
    if (is_given) continue;
    return Error{
        ErrorCode::kUsage, fmt::format("{} is missing", needed.name), {state_->HelpHint()}};
  }
  return Outcome::kRun;
}

std::string CommandLine::Help() const {
  std::string text = state_->app.help();
  // CLI11 leaves two blank lines between groups.
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

const CommandDescription& CommandLine::description() const { return state_->description; }

std::vector<std::string> CommandLine::Typed(const std::string& flag) const {
  const CLI::Option* const option = state_->setters[state_->NumberOf(flag)].option;
  return option->count() == 0 ? std::vector<std::string>() : option->results();
}

Result<Done> CommandLine::Set(const std::string& flag, const std::vector<std::string>& values) {
  const State::Setter& setter = state_->setters[state_->NumberOf(flag)];
  for (const std::string& value : values) CKPLAN_RETURN_IF_ERROR(setter.set(value));
  return Done{};
}

namespace {

struct OtherToolNames {
  std::string_view words;  // Each between blanks.
  std::string_view advice;
};

constexpr OtherToolNames kFlags[] = {
    {" --batch-size --batchsize --bs --bsz --train-batch-size --per-device-train-batch-size ",
     "set the batch with --batch 64"},
    {" --seq-len --seq-length --seqlen --sequence-length --max-length --max-seq-len --image-size "
     "--img-size --imgsz --height --width -n -b -l ",
     "set sizes with -D NAME=N; `ckplan inspect MODEL` shows the names"},
    {" --device --gpu --cuda --target --accelerator ",
     "planning needs no device; --cost flops:rtx4090 uses its speed, --memory rtx4090 its memory"},
    {" --vram --mem --max-memory --gpu-memory --memory-budget --budget-bytes --max-mem ",
     "limit a step's memory with --memory 16GiB or --budget 16GiB"},
    {" --gpus --num-gpus --world-size --nproc --nproc-per-node --tp --dp --fsdp --zero ",
     "shard parameters over devices with --shard fsdp:8"},
    {" --dtype --precision --fp16 --bf16 --half --amp --mixed-precision ",
     "set the type of stored activations with --activation-type bf16"},
    {" --shape --shapes --input-shapes --inputs --minshapes --optshapes --maxshapes ",
     "set the shape of an input with --input-shape NAME=N,N,..."},
    {" --model --onnx --input --input-model --file -i -m ",
     "name the model without a flag: ckplan plan MODEL"},
    {" --out --outfile --output-file --output-path --save --export --dest ",
     "name the file to write with -o plan.json"},
    {" --json --csv --md --markdown --yaml ", "set the format with --format json, md or csv"},
    {" --solver --algorithm --method --strategy --planner --policy ",
     "name the algorithm with --algo; `ckplan algos` lists them"},
    {" --checkpoint --checkpointing --gradient-checkpointing --activation-checkpointing --remat ",
     "ckplan decides what to recompute; give a limit with --budget 60%"},
    {" --timeout --max-time --time ", "limit the search with --time-limit 60s"},
    {" --seed ", "plans don't depend on random numbers; leave it out"},
    {" --threads --jobs --workers --num-threads -j ", "planning runs on one thread; leave it out"},
    {" --debug --log-level --loglevel --verbosity ", "show details with -v"},
    {" --silent --no-output -s ", "print only errors with -q"},
    {" --version --ver -v ", "`ckplan --version` prints the version"},
    {" --usage -? ", "--help shows all options"},
};

constexpr OtherToolNames kCommands[] = {
    {" version ", "`ckplan --version` prints the version"},
    {" usage ", "`ckplan --help` lists the commands"},
    {" optimize optimise solve schedule make create generate run ",
     "`ckplan plan MODEL` plans a model"},
    {" info show view summary stats print describe dump ",
     "`ckplan inspect MODEL` shows a model's operators, sizes and memory"},
    {" convert export annotate write save ",
     "`ckplan apply PLAN MODEL -o planned.onnx` writes a plan into its model"},
    {" verify test lint ", "`ckplan check PLAN MODEL` verifies a plan"},
    {" visualize visualise plot draw dot render ",
     "`ckplan report PLAN -o report.html` draws a plan, `ckplan graph MODEL --emit dot=graph.dot` "
     "a "
     "model"},
    {" algorithms solvers list ls ", "`ckplan algos` lists the algorithms"},
    {" gpus hardware presets ", "`ckplan devices` lists the devices"},
    {" max-batch batch capacity ", "`ckplan fit MODEL --memory 24GiB` finds the largest batch"},
    {" sweep curve frontier tradeoff ", "`ckplan pareto MODEL` draws memory against time"},
    {" validate profile exec execute train ops ", "ckplan doesn't run models; see `ckexec --help`"},
    {" bench benchmark ", "see `ckbench --help`"},
};

std::string_view AdviceOn(std::span<const OtherToolNames> table, std::string_view typed) {
  std::string word = " ";
  for (const char c : typed) {
    word += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  word += ' ';
  for (const OtherToolNames& row : table) {
    if (row.words.find(word) != std::string_view::npos) return row.advice;
  }
  return "";
}

}  // namespace

std::string_view AdviceOnFlag(std::string_view flag) { return AdviceOn(kFlags, flag); }

std::string_view AdviceOnCommand(std::string_view word) { return AdviceOn(kCommands, word); }

}  // namespace ckplan
