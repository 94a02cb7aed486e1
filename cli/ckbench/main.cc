// ckbench computes figures for docs/. This file parses the command line, runs one command, and maps
// errors to exit codes.
#include "cli/ckbench/commands.h"
#include "cli/common/guard.h"

int main(int argc, char** argv) {
  return ckplan::RunProgram({"ckbench"}, ckplan::RunBench, argc, argv);
}
