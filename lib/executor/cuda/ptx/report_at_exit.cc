// Reports, when the program ends, what was played. A finding makes the program fail.
//
//   CKPLAN_PTX_KERNELS=FILE   appends a line for each kernel: "run: NAME" or "not run: NAME";
//                             scripts/kernel_coverage.py adds up the lines of several programs
//   CKPLAN_PTX_LAUNCHES=FILE  writes a line of JSON for each launch, with its instructions and the
//                             bytes and sectors that it read and wrote (memory.h)
#include <cstdio>
#include <cstdlib>

#include "lib/executor/cuda/ptx/launches.h"

namespace ckplan::ptx {

namespace {

constexpr int kFailed = 70;

struct ReportAtExit {
  ReportAtExit() {
    (void)FindingsSoFar();  // So that the findings are destroyed later.
    if (const char* path = std::getenv("CKPLAN_PTX_LAUNCHES")) WriteLaunches(path);
  }
  ~ReportAtExit() {
    if (const char* path = std::getenv("CKPLAN_PTX_KERNELS")) AppendKernels(path);
    if (ReportPlayed()) return;
    std::fflush(nullptr);
    std::_Exit(kFailed);
  }
};
const ReportAtExit report_at_exit;

}  // namespace

}  // namespace ckplan::ptx
