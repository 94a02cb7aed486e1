// The words that were typed after a command, so that messages can suggest a command that differs
// from the typed one only where it must.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/command_line.h"

namespace ckplan {

class TypedArguments {
 public:
  TypedArguments() = default;
  TypedArguments(const std::vector<std::string>& words, const CommandDescription& command);

  // Returns all words as a shell takes them, each after a blank, with `added` after the last
  // option. `added` starts with a blank: " -D N=8".
  std::string With(std::string_view added) const;
  // Returns the words of these options, named by their long flags: " --memory-limit 2GiB".
  std::string Of(std::initializer_list<std::string_view> flags) const;
  // Returns the words without those of these options.
  TypedArguments Without(std::initializer_list<std::string_view> flags) const;
  // False if an input is standard input or a pipe: the same command would find it empty.
  bool CanRepeat() const;
  // Returns `stem`.json, or a numbered name if a typed word names that file: "plan2.json".
  std::string NewFile(std::string_view stem) const;

 private:
  struct Item {
    std::string flag;  // The long flag of an option; empty for other arguments.
    std::string text;  // As a shell takes it: "-D N=8".
    std::string path;  // The file that its value names, if it is one: "costs.json".
  };
  std::vector<Item> items_;
  size_t option_end_ = 0;  // The number of items before "--".
};

}  // namespace ckplan
