// Scripts by which a shell completes the command line of a program.
//
// They know every command, every option of each, and the values that options take: their choices,
// the names of algorithms, devices and emitters, and files where a file is named. They run nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/program_description.h"

namespace ckplan {

// How the value of an option, or a positional argument, is completed.
struct ValueCompletion {
  enum class Kind { kNothing, kFiles, kWords, kList };
  Kind kind = Kind::kNothing;
  // Words to choose from; of a list, several may be chosen, with commas between them. What goes on
  // behind a word ends in "=" or ":".
  std::vector<std::string> words;
  // Whether it is a file that follows such a word.
  bool has_files_behind = false;
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
