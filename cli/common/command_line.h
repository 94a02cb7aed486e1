// Declares and parses the arguments of one command. It wraps CLI11, which no other file includes.
//
// Every value is read as text, and its caller parses it. Errors of CLI11 are returned as kUsage.
// For an unknown name, they suggest the nearest known name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// Turns "plan one model" into "Plan one model.", so that help can show a summary from a table.
std::string Sentence(std::string_view summary);

// Replaces a first word "help" by --help, and "help plan" by "plan --help".
std::vector<std::string> WithoutHelpWord(std::vector<std::string> arguments);

// Returns the word as it is typed in a shell: in quotes unless it is plain.
std::string ShellWord(std::string_view word);
// Returns the path as such a word that is not taken for an option: "./-m.onnx".
std::string PathWord(const std::string& path);

// The options of a command as data, from which help, completions, manual pages and configuration
// files are made.
struct OptionDescription {
  std::string flags;                 // "-a,--algo"
  std::string form;                  // "NAME"; empty for a flag without a value.
  std::vector<std::string> choices;  // The accepted words, the default first; empty for any text.
  std::string help;
  bool may_repeat = false;
  std::string section = {};  // The heading above it in help: "Output"; empty if it is deprecated.

  std::string LongFlag() const;  // "--algo"
  std::vector<std::string> EachFlag() const;
};

struct PositionalDescription {
  std::string name;  // "MODEL"
  std::string help;
  bool is_optional = false;
  bool may_repeat = false;
};

struct CommandDescription {
  std::string name;  // "ckplan plan"
  std::string example;
  std::string summary;  // A sentence.
  std::string usage;    // "ckplan plan [options] MODEL"
  std::vector<PositionalDescription> positionals;
  std::vector<OptionDescription> options;  // In the order of help; --help is the first.

  // The options that help, completions and manual pages show: all but deprecated ones.
  std::vector<OptionDescription> Shown() const;
};

class CommandLine {
 public:
  // `name` is the command as it is typed: "ckplan plan". The help starts with the example.
  CommandLine(std::string name, std::string_view example, std::string_view summary);
  CommandLine(CommandLine&&) noexcept;
  ~CommandLine();

  // While it lives, options are declared under this heading of the help rather than "Options".
  // Under the heading kDeprecated, whatever sections are inside, options are accepted but shown
  // nowhere.
  static constexpr std::string_view kDeprecated = "";
  class Section {
   public:
    Section(CommandLine& line, std::string_view heading);
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
    ~Section();

   private:
    CommandLine& line_;
    const std::string before_;
  };

  void Positional(const std::string& name, std::string_view help, std::string* value);
  void OptionalPositional(const std::string& name, std::string_view help, std::string* value);
  void Positionals(const std::string& name, std::string_view help,
                   std::vector<std::string>* values);  // One or more.
  // `form` is the value's name that help shows after the flags: "SIZE".
  void Value(const std::string& flags, std::string_view form, std::string_view help,
             std::optional<std::string>* value);
  void List(const std::string& flags, std::string_view form, std::string_view help,
            std::vector<std::string>* values);
  struct ChoiceExtras {
    bool* is_typed = nullptr;        // Set where a choice is typed.
    std::vector<std::string> older;  // Words that still work, and that help no longer shows.
  };
  // The first choice is the default.
  void Choice(const std::string& flags, std::vector<std::string> choices, std::string_view help,
              std::string* value, ChoiceExtras extras);
  void Choice(const std::string& flags, std::vector<std::string> choices, std::string_view help,
              std::string* value) {
    Choice(flags, std::move(choices), help, value, {});
  }
  void Flag(const std::string& flags, std::string_view help, bool* value);
  // Declares a flag with which the command needs no positional arguments.
  void FlagInstead(const std::string& flags, std::string_view help, bool* value);
  void Footer(std::string_view text);

  const CommandDescription& description() const;
  bool HasOption(const std::string& flag) const;
  // Sets how to find the commands that have an option which this one lacks; messages name them.
  void SetElsewhere(std::function<std::vector<std::string>(const std::string& flag)> elsewhere);

  enum class Outcome { kRun, kHelp };
  Result<Outcome> Parse(std::vector<std::string> arguments);
  std::string Help() const;

  // Returns the values that were typed for an option, by its long flag; "true" for a flag without a
  // value.
  std::vector<std::string> Typed(const std::string& flag) const;
  // Sets an option's values after Parse, as if they had been typed. An option that may be repeated
  // gets any number of values, which are added to the typed ones; others get one. kUsage: the text
  // is none of its choices.
  Result<Done> Set(const std::string& flag, const std::vector<std::string>& values);

 private:
  struct State;
  Error Unknown(const std::string& argument) const;

  std::unique_ptr<State> state_;
};

// Flags and commands of other programs that people type by habit, and what to type instead.

// Returns what the flag means elsewhere and what to type here: "the batch is set by ...", or "" for
// a flag that it does not know. Letters may have either case, and "_" stands for "-".
std::string_view AdviceOnFlag(std::string_view flag);

// Does the same for the name of a command.
std::string_view AdviceOnCommand(std::string_view word);

}  // namespace ckplan
