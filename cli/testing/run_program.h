// Runs a shell command the way a person or a script would: with pipes, or on a pseudo-terminal.
#pragma once

#include <string>
#include <vector>

#include "lib/testing/instances.h"

namespace ckplan {

enum class Streams {
  kApart,     // Standard output and standard error in separate pipes.
  kTogether,  // Both in one pipe, interleaved as on a screen.
  kTerminal,  // On a pseudo-terminal 100 columns wide.
};

struct ProgramRun {
  std::string command;                   // For /bin/sh.
  std::string folder;                    // The working directory.
  std::string input;                     // Standard input; closed at once if empty.
  std::vector<std::string> environment;  // "NAME=VALUE", added to the tests' own environment.
  Streams streams = Streams::kApart;
  // The CPU time limit for each process of the command: more than ten times what the slowest test
  // command needs, because the machine may be busy.
  int cpu_seconds = kHasSanitizers ? 3600 : 300;
};

struct ProgramResult {
  std::string out;  // Everything, unless the streams are apart.
  std::string err;
  int status = 0;  // As in a shell: 128 + signal for a killed program.
};

// Removes NO_COLOR and FORCE_COLOR from the environment. Kills a program that exceeds its CPU time
// or prints nothing for an hour.
ProgramResult RunProgram(const ProgramRun& run);

// True if this machine has pseudo-terminals. A bare chroot has no /dev/pts.
bool HasTerminals();

}  // namespace ckplan
