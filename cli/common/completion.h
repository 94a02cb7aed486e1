// Scripts by which a shell completes the command line of a program.
//
// The scripts know every command, every option of each, and the values that options take: their
// choices, the names of algorithms, devices and emitters, and files where the value is a file. The
// scripts run no program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/self_description.h"

namespace ckplan {

// How the value of an option, or a positional argument, is completed.
struct ValueCompletion {
  enum class Kind { kNothing, kFiles, kWords, kList };
  Kind kind = Kind::kNothing;
  // Words to choose from. In a list, several may be chosen, separated by commas. A word after which
  // more text follows ends in "=" or ":".
  std::vector<std::string> words;
  // Whether a file follows such a word.
  bool has_files_after = false;
};
ValueCompletion CompletionOf(const CommandDescription& command, const OptionDescription& option);
ValueCompletion CompletionOf(const ProgramDescription& program, const CommandDescription& command,
                             const PositionalDescription& positional);

struct Shell {
  std::string_view name;  // "bash"
  std::string (*script)(const ProgramDescription& program);
};
std::vector<Shell> AllShells();

}  // namespace ckplan
