// Runs a shell command the way a person or a script would: with pipes, or on a pseudo-terminal.
#pragma once

#include <string>
#include <vector>

#include "lib/testing/instances.h"

namespace ckplan {

enum class Streams {
  kApart,     // Standard output and standard error in two pipes.
  kTogether,  // In one pipe, as a screen shows them.
  kTerminal,  // On a pseudo-terminal of 100 columns.
};

struct ProgramRun {
  std::string command;                   // For /bin/sh.
  std::string folder;                    // Where it runs.
  std::string input;                     // Standard input; closed at once where it is empty.
  std::vector<std::string> environment;  // "NAME=VALUE", beside the tests' own environment.
  Streams streams = Streams::kApart;
  // For each process of the command. More than ten times what the longest command of a test takes:
  // the machine may be busy.
  int cpu_seconds = kHasSanitizers ? 3600 : 300;
};

struct ProgramResult {
  std::string out;  // Everything, unless the streams are apart.
  std::string err;
  int status = 0;  // As in a shell: 128 + the signal for a killed program.
};

// NO_COLOR and FORCE_COLOR of the surroundings do not reach the program. One that takes more CPU
// time than it may, or prints nothing for an hour, is killed.
ProgramResult RunProgram(const ProgramRun& run);

// Whether this machine has pseudo-terminals: a bare chroot has no /dev/pts.
bool HasTerminals();

}  // namespace ckplan
