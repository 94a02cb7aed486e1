#include "cli/common/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/files/emit/emitters.h"
#include "lib/files/emit/schemas.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/cost/link.h"

namespace ckplan {

// Decides how values are completed: by their choices, by the tables of their names, or as files.

namespace {

using Kind = ValueCompletion::Kind;
using Words = std::vector<std::string>;

std::vector<Device> Devices() {
  Result<std::vector<Device>> devices = ListDevices();
  return devices.ok() ? std::move(devices).value() : std::vector<Device>();
}

// Returns the words of a sentence, without commas.
Words WordsOfSentence(std::string_view sentence) {
  Words words;
  while (!sentence.empty()) {
    const std::string_view word = sentence.substr(0, sentence.find_first_of(" ,"));
    if (!word.empty()) words.emplace_back(word);
    sentence.remove_prefix(std::min(word.size() + 1, sentence.size()));
  }
  return words;
}

Words AlgorithmNames() {
  Words words;
  for (const SolverInfo* const info : ListedAlgorithms()) words.emplace_back(info->name);
  return words;
}

Words DeviceNames() {
  Words words;
  for (const Device& device : Devices()) words.push_back(device.name);
  return words;
}

Words LinkNames() {
  Words words;
  const Result<std::vector<LinkPreset>> links = ListLinks();
  if (!links.ok()) return words;
  for (const LinkPreset& link : *links) words.push_back(link.name);
  return words;
}

Words CostModels() {
  Words words = {"flops", "paper", "unit", "file:"};
  for (const Device& device : Devices()) words.push_back("flops:" + device.name);
  return words;
}

// Returns the emitters that the help of the option names, because commands accept different ones.
Words EmitterWords(const OptionDescription& option) {
  const std::vector<std::string> flag_words = WordsOfSentence(option.help);
  Words words;
  for (const Emitter& emitter : AllEmitters()) {
    const bool is_taken =
        std::find(flag_words.begin(), flag_words.end(), emitter.name) != flag_words.end();
    if (is_taken) words.push_back(fmt::format("{}=", emitter.name));
  }
  return words;
}

Words KnobWords() {
  Words words;
  for (const std::string_view name : KnobNames()) words.push_back(fmt::format("{}=", name));
  return words;
}

Words FieldWords(std::string_view field) {
  Words words;
  const auto& member = std::get<WordsMember>(FieldOf(field).member);
  for (const std::string_view word : member.words) words.emplace_back(word);
  return words;
}

bool IsFile(std::string_view form) {
  constexpr std::string_view kForms[] = {"FILE", "PLAN",       "MODEL",         "OLD",
                                         "NEW",  "NAME|@FILE", "NAME,...|@FILE"};
  return std::find(std::begin(kForms), std::end(kForms), form) != std::end(kForms);
}

}  // namespace

std::string WordOf(const CommandDescription& command) {
  return command.name.substr(command.name.find(' ') + 1);
}

ValueCompletion CompletionOf(const CommandDescription&, const OptionDescription& option) {
  const std::string flag = option.LongFlag();
  const bool is_list = option.form.find(',') != std::string::npos;
  const Kind words = is_list ? Kind::kList : Kind::kWords;
  if (!option.choices.empty()) return {Kind::kWords, option.choices};
  if (flag == "--algo") {
    Words names = AlgorithmNames();
    if (option.form.ends_with("|all")) names.emplace_back("all");
    return {words, std::move(names)};
  }
  if (flag == "--optimizer") return {words, FieldWords("optimizer")};
  if (flag == "--cost" && option.form == "MODEL") return {Kind::kWords, CostModels(), true};
  if (flag == "--cost") return {Kind::kWords, {"file:"}, true};
  if (flag == "--memory") return {Kind::kWords, DeviceNames()};
  if (flag == "--offload") return {Kind::kWords, LinkNames()};
  if (flag == "--emit") return {Kind::kWords, EmitterWords(option), true};
  if (flag == "--knob") return {Kind::kWords, KnobWords()};
  return {IsFile(option.form) ? Kind::kFiles : Kind::kNothing};
}

ValueCompletion CompletionOf(const ProgramDescription& program, const CommandDescription& command,
                             const PositionalDescription& positional) {
  if (positional.name == "COMMAND") {
    Words words;
    for (const CommandDescription& other : program.commands) words.push_back(WordOf(other));
    return {Kind::kWords, std::move(words)};
  }
  if (positional.name == "SHELL") {
    Words words;
    for (const Shell& shell : AllShells()) words.emplace_back(shell.name);
    return {Kind::kWords, std::move(words)};
  }
  if (positional.name == "DEVICE") return {Kind::kWords, DeviceNames()};
  if (positional.name == "NAME" && WordOf(command) == "schema") {
    Words words;
    for (const EmbeddedSchema& schema : EmbeddedSchemas()) words.emplace_back(schema.name);
    return {Kind::kWords, std::move(words)};
  }
  return {IsFile(positional.name) ? Kind::kFiles : Kind::kNothing};
}

namespace {

using Kind = ValueCompletion::Kind;

// Returns the text within single quotes, as all three shells read it.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Fish reads a backslash within single quotes as an escape.
std::string FishQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::vector<std::string> CommandWords(const ProgramDescription& program) {
  std::vector<std::string> words;
  for (const CommandDescription& command : program.commands) words.push_back(WordOf(command));
  return words;
}

// "#" begins a comment in all three shells.
std::string HeadOf(const ProgramDescription& program, const Shell& shell) {
  return fmt::format("# {} completion for {}, written by `{} completion {}`.\n", shell.name,
                     program.name, program.name, shell.name);
}

// ---- bash ----

// The typed text is taken from the line, because bash splits words at "=" and ":" and replaces only
// what follows the last of them: `skip` characters of the word stay as they are.
constexpr std::string_view kBashFunctions = R"(
_PROGRAM_offer() {  # prefix value word...: the words that begin with the value
  local prefix=$1 value=$2 word
  shift 2
  for word in "$@"; do
    [[ $word == "$value"* ]] && COMPREPLY+=("$prefix$word")
  done
}

_PROGRAM_offer_files() {  # prefix value
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do
    COMPREPLY+=("$1$file")
  done < <(compgen -f -- "$2")
}

_PROGRAM_complete() {
  local line=${COMP_LINE:0:COMP_POINT} token flag value prefix="" command skip=0 i
  local kind="" files_behind="" options="" positional="" rest
  local -a words choices
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local count=${#words[@]}
  (( count > 1 )) || return
  token=${words[count-1]}
  for (( i = 0; i < ${#token}; i++ )); do
    [[ $COMP_WORDBREAKS == *"${token:i:1}"* ]] && skip=$(( i + 1 ))
  done
  if [[ $token == --*=* ]]; then
    flag=${token%%=*} prefix="${token%%=*}=" value=${token#*=}
  else
    flag=${words[count-2]} value=$token
  fi
  command=${words[1]}
  (( count == 2 )) && command=""
  _PROGRAM_look_up
  rest=${value%%[=:]*}
  rest+=${value:${#rest}:1}
  if [[ -n $files_behind && -n $rest && " ${choices[*]} " == *" $rest "* && $rest == *[=:] ]]; then
    prefix+=$rest value=${value#"$rest"} kind=files
  fi
  case $kind in
    files) _PROGRAM_offer_files "$prefix" "$value" ;;
    words) _PROGRAM_offer "$prefix" "$value" "${choices[@]}" ;;
    list)
      rest=${value%"${value##*,}"}
      _PROGRAM_offer "$prefix$rest" "${value##*,}" "${choices[@]}"
      ;;
    nothing) ;;
    *)
      if [[ $token == -* ]]; then
        _PROGRAM_offer "" "$token" $options
      else
        (( ${#choices[@]} )) && _PROGRAM_offer "" "$token" "${choices[@]}"
        [[ -n $positional ]] && _PROGRAM_offer_files "" "$token"
      fi
      ;;
  esac
  for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]:skip}; done
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace 2>/dev/null
  return 0
}
)";

std::string PrependName(std::string_view text, std::string_view name) {
  constexpr std::string_view kPlaceholder = "PROGRAM";
  std::string result;
  for (size_t at = text.find(kPlaceholder); at != text.npos; at = text.find(kPlaceholder)) {
    result.append(text.substr(0, at)).append(name);
    text.remove_prefix(at + kPlaceholder.size());
  }
  return result.append(text);
}

// Returns the assignments from which a value's completion is looked up.
std::string BashValue(const ValueCompletion& value) {
  switch (value.kind) {
    case Kind::kNothing:
      return "kind=nothing";
    case Kind::kFiles:
      return "kind=files";
    case Kind::kWords:
    case Kind::kList:
      break;
  }
  return fmt::format("kind={} files_behind={} choices=({})",
                     value.kind == Kind::kList ? "list" : "words",
                     value.has_files_after ? "yes" : "''", fmt::join(value.words, " "));
}

std::string BashOptions(const CommandDescription& command) {
  std::vector<std::string> flags;
  for (const OptionDescription& option : command.Shown()) {
    for (std::string& flag : option.EachFlag()) flags.push_back(std::move(flag));
  }
  return fmt::format("options={}", Quoted(fmt::format("{}", fmt::join(flags, " "))));
}

std::string BashPositionals(const ProgramDescription& program, const CommandDescription& command) {
  std::string text;
  for (const PositionalDescription& positional : command.positionals) {
    const ValueCompletion value = CompletionOf(program, command, positional);
    if (value.kind == Kind::kFiles) text = " positional=files" + text;
    if (value.words.empty()) continue;
    text += fmt::format(" choices=({})", fmt::join(value.words, " "));
  }
  return text;
}

// Makes one branch for all options that are completed alike, because most options of all commands
// are.
std::string BashValues(const ProgramDescription& program) {
  std::vector<std::string> order;
  std::map<std::string, std::string> patterns;
  for (const CommandDescription& command : program.commands) {
    for (const OptionDescription& option : command.Shown()) {
      if (option.form.empty()) continue;
      const std::string value = BashValue(CompletionOf(command, option));
      if (!patterns.contains(value)) order.push_back(value);
      for (const std::string& flag : option.EachFlag()) {
        std::string& pattern = patterns[value];
        if (!pattern.empty()) pattern += " | \\\n      ";
        pattern += fmt::format("'{} {}'", WordOf(command), flag);
      }
    }
  }
  std::string text;
  for (const std::string& value : order) {
    text += fmt::format("    {})\n      {}\n      ;;\n", patterns[value], value);
  }
  return text;
}

std::string BashScript(const ProgramDescription& program) {
  const std::string all = fmt::format("{}", fmt::join(CommandWords(program), " "));
  std::string text = HeadOf(program, AllShells()[0]);
  text += PrependName(kBashFunctions, program.name);
  text += fmt::format("\n_{}_look_up() {{  # sets kind and choices, or what else may stand here\n",
                      program.name);
  text += fmt::format(
      "  case $command in\n"
      "    '')\n"
      "      choices=({} help)\n"
      "      options='-h --help -V --version'{} flag=''\n"
      "      ;;\n"
      "    help) choices=({}) ;;\n",
      all, program.default_command.empty() ? "" : " positional=files", all);
  for (const CommandDescription& command : program.commands) {
    text += fmt::format("    {}) {}{} ;;\n", WordOf(command), BashOptions(command),
                        BashPositionals(program, command));
  }
  if (!program.default_command.empty()) {
    text += fmt::format("    *) command={}; _{}_look_up; return ;;\n", program.default_command,
                        program.name);
  }
  text += "  esac\n";
  text += fmt::format("  case \"$command $flag\" in\n{}  esac\n}}\n", BashValues(program));
  text += fmt::format("\ncomplete -F _{}_complete {}\n", program.name, program.name);
  return text;
}

// ---- zsh ----

// In a specification for _arguments, a colon ends a field and a bracket ends the description.
std::string ZshEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(const ValueCompletion& value, std::string_view name) {
  std::vector<std::string> words;
  for (const std::string& word : value.words) words.push_back(ZshEscaped(word));
  switch (value.kind) {
    case Kind::kNothing:
      return " ";
    case Kind::kFiles:
      return "_files";
    case Kind::kList:
      return fmt::format("_values -s , {} {}", ZshEscaped(name), fmt::join(words, " "));
    case Kind::kWords:
      break;
  }
  // No blank follows a word that ends in "=" or ":".
  const bool goes_on =
      !words.empty() && (value.words.back().ends_with('=') || value.has_files_after);
  if (!goes_on) return fmt::format("({})", fmt::join(words, " "));
  return fmt::format("compadd -S \"\" -- {}", fmt::join(value.words, " "));
}

std::string ZshOption(const CommandDescription& command, const OptionDescription& option) {
  const std::vector<std::string> flags = option.EachFlag();
  const bool has_value = !option.form.empty();
  std::string names;
  for (const std::string& flag : flags) {
    const bool is_long = flag.starts_with("--");
    names += (names.empty() ? "" : ",") + flag + (!has_value ? "" : is_long ? "=" : "+");
  }
  std::string spec = option.may_repeat  ? "'*'"
                     : flags.size() > 1 ? Quoted(fmt::format("({})", fmt::join(flags, " ")))
                                        : std::string();
  spec += flags.size() > 1 ? "{" + names + "}" : names;
  std::string rest = fmt::format("[{}]", ZshEscaped(option.help));
  if (has_value) {
    const ValueCompletion value = CompletionOf(command, option);
    const std::string name = value.words.empty() ? option.form : option.LongFlag().substr(2);
    rest += fmt::format(":{}:{}", ZshEscaped(name), ZshAction(value, name));
  }
  return spec + Quoted(rest);
}

std::string ZshPositional(const ProgramDescription& program, const CommandDescription& command,
                          const PositionalDescription& positional) {
  const ValueCompletion value = CompletionOf(program, command, positional);
  const std::string_view head = positional.may_repeat ? "*:" : positional.is_optional ? "::" : ":";
  return Quoted(
      fmt::format("{}{}:{}", head, ZshEscaped(positional.name), ZshAction(value, positional.name)));
}

std::string ZshScript(const ProgramDescription& program) {
  const bool has_default = !program.default_command.empty();
  std::string text = fmt::format("#compdef {}\n", program.name);
  text += HeadOf(program, AllShells()[1]);
  text += fmt::format("\n_{}() {{\n  local -a commands=(\n", program.name);
  for (const CommandDescription& command : program.commands) {
    text += fmt::format("    {}\n", Quoted(WordOf(command) + ":" + ZshEscaped(command.summary)));
  }
  text += fmt::format(
      "    'help:Show the help of a command.'\n"
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe -t commands command commands\n"
      "    [[ $words[2] == -* ]] && compadd -- -h --help -V --version\n"
      "{}"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  case $command in\n"
      "    help) _describe -t commands command commands; return ;;\n"
      "    {}) shift words; (( CURRENT-- )) ;;\n"
      "    *) {} ;;\n"
      "  esac\n"
      "  case $command in\n",
      has_default ? "    _files\n" : "", fmt::join(CommandWords(program), "|"),
      has_default ? "command=" + program.default_command : "return");
  for (const CommandDescription& command : program.commands) {
    text += fmt::format("    {})\n      _arguments -s -S", WordOf(command));
    for (const OptionDescription& option : command.Shown()) {
      text += " \\\n        " + ZshOption(command, option);
    }
    for (const PositionalDescription& positional : command.positionals) {
      text += " \\\n        " + ZshPositional(program, command, positional);
    }
    text += "\n      ;;\n";
  }
  return text + fmt::format("  esac\n}}\n\n_{} \"$@\"\n", program.name);
}

// ---- fish ----

std::string FishOption(const ProgramDescription& program, const CommandDescription& command,
                       const OptionDescription& option) {
  std::string text =
      fmt::format("complete -c {} -n {}", program.name,
                  Quoted(fmt::format("test (__{}_command) = {}", program.name, WordOf(command))));
  for (const std::string& flag : option.EachFlag()) {
    const bool is_long = flag.starts_with("--");
    text += is_long ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  }
  if (!option.form.empty()) {
    const ValueCompletion value = CompletionOf(command, option);
    const bool takes_files = value.kind == Kind::kFiles || value.has_files_after;
    text += takes_files ? " -r -F" : " -x";
    if (!value.words.empty()) {
      const std::string words = fmt::format("{}", fmt::join(value.words, " "));
      const bool is_list = value.kind == Kind::kList;
      text += " -a " + (is_list ? Quoted("(__fish_append , " + words + ")") : Quoted(words));
    }
  }
  return text + " -d " + FishQuoted(option.help) + "\n";
}

std::string FishScript(const ProgramDescription& program) {
  const std::string& name = program.name;
  std::string text = HeadOf(program, AllShells()[2]);
  text += fmt::format(
      "\nfunction __{}_command\n"
      "  set -l words (commandline -opc)\n"
      "  if test (count $words) -lt 2\n"
      "    echo none\n"
      "  else if contains -- $words[2] {} help\n"
      "    echo $words[2]\n"
      "  else\n"
      "    echo {}\n"
      "  end\n"
      "end\n\n",
      name, fmt::join(CommandWords(program), " "),
      program.default_command.empty() ? "unknown" : program.default_command);
  const auto add = [&](std::string_view condition, std::string_view rest) {
    text += fmt::format("complete -c {} -n {} {}\n", name,
                        Quoted(fmt::format("test (__{}_command) = {}", name, condition)), rest);
  };
  add("none", "-s h -l help -d 'Show the help'");
  add("none", "-s V -l version -d 'Show the version'");
  for (const CommandDescription& command : program.commands) {
    const std::string word = WordOf(command);
    const std::string words = fmt::format("-a {} -d {}", word, FishQuoted(command.summary));
    add("none", words);
    add("help", "-f " + words);
    for (const OptionDescription& option : command.Shown()) {
      text += FishOption(program, command, option);
    }
    for (const PositionalDescription& positional : command.positionals) {
      const ValueCompletion value = CompletionOf(program, command, positional);
      if (value.words.empty()) continue;
      add(word, fmt::format("-f -a {}", Quoted(fmt::format("{}", fmt::join(value.words, " ")))));
    }
  }
  return text;
}

}  // namespace

std::vector<Shell> AllShells() {
  return {{"bash", BashScript}, {"zsh", ZshScript}, {"fish", FishScript}};
}

}  // namespace ckplan
