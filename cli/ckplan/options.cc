#include "cli/ckplan/options.h"

namespace ckplan {

void AddScreenOptions(CommandLine& line, Options& options) {
  const CommandLine::Section section(line, kGlobalSection);
  line.Choice("--color", {"auto", "always", "never"}, "when to color text", &options.color);
  line.Flag("-q,--quiet", "print only errors and requested output", &options.is_quiet);
  line.Flag("--no-progress", "show no progress on a terminal", &options.has_no_progress);
}

}  // namespace ckplan
