// ckbench: figures for docs/. Parses, runs one paper after the other, maps errors to exit codes.
#include "cli/ckbench/reproduce_command.h"
#include "cli/common/guard.h"

int main(int argc, char** argv) {
  return ckplan::RunProgram("ckbench", ckplan::RunBench, argc, argv);
}
