// Runs a shell command the way a person or a script would: with pipes, or on a pseudo-terminal.
#pragma once

#include <string>
#include <vector>

#include "lib/testing/instances.h"

namespace ckplan {

enum class Streams {
  kApart,     // Standard output and standard error in two pipes.
  kTogether,  // Both in one pipe, as a screen shows them.
  kTerminal,  // On a pseudo-terminal of 100 columns.
};

struct ProgramRun {
  std::string command;                   // For /bin/sh.
  std::string folder;                    // Where it runs.
  std::string input;                     // Standard input; closed at once if it is empty.
  std::vector<std::string> environment;  // "NAME=VALUE", added to the tests' own environment.
  Streams streams = Streams::kApart;
  // The limit of CPU time for each process of the command. It is more than ten times the time of
  // the longest command of a test, because the machine may be busy.
  int cpu_seconds = kHasSanitizers ? 3600 : 300;
};

struct ProgramResult {
  std::string out;  // Everything, unless the streams are apart.
  std::string err;
  int status = 0;  // As in a shell: 128 + the signal for a killed program.
};

// NO_COLOR and FORCE_COLOR of the environment do not reach the program. A program that exceeds its
// CPU time, or prints nothing for an hour, is killed.
ProgramResult RunProgram(const ProgramRun& run);

// Returns whether this machine has pseudo-terminals. A bare chroot has no /dev/pts.
bool HasTerminals();

}  // namespace ckplan
