// Where commands of tests run.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "cli/testing/run_program.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {

inline const std::filesystem::path kProject = CKPLAN_PROJECT_DIR;

// The executor is built only where what it needs was found.
#ifdef CKEXEC_BINARY
inline constexpr const char* kExecutor = CKEXEC_BINARY;
#else
inline constexpr const char* kExecutor = nullptr;
#endif

// A folder like the project's root as far as commands of the tests see it: testdata/, and
// scripts/run, which runs the built program. The programs are on the path.
class Workplace {
 public:
  Workplace();

  ProgramResult Run(ProgramRun run) const;
  std::string PathOf(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& text) const;
  // Names of the files that commands have left.
  std::set<std::string> Files() const;

 private:
  TemporaryFolder folder_;
};

}  // namespace ckplan
