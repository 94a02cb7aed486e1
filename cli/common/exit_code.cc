#include "cli/common/exit_code.h"

#include <fmt/format.h>

namespace ckplan {

std::string ExitCodeLines(std::span<const ExitCodeMeaning> meanings) {
  std::string text = "Exit codes:\n";
  for (const ExitCodeMeaning& row : meanings) {
    text += fmt::format("  {:>3}  {}\n", static_cast<int>(row.code), row.meaning);
  }
  text.pop_back();
  return text;
}

}  // namespace ckplan
