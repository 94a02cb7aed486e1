// Flags and commands of other programs that people type by habit, and what to type instead.
#pragma once

#include <string>
#include <string_view>

namespace ckplan {

// Returns what the flag means elsewhere and what to type here: "the batch is set by ...", or "" for
// a flag that it does not know. Letters may have either case, and "_" stands for "-".
std::string_view AdviceOnFlag(std::string_view flag);

// Does the same for the name of a command.
std::string_view AdviceOnCommand(std::string_view word);

}  // namespace ckplan
