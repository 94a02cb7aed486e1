// The working directory of test commands.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "cli/testing/run_program.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {

inline const std::filesystem::path kProject = CKPLAN_PROJECT_DIR;

// The executor is built only if its libraries were found.
#ifdef CKEXEC_BINARY
inline constexpr const char* kExecutor = CKEXEC_BINARY;
#else
inline constexpr const char* kExecutor = nullptr;
#endif

// A folder that looks like the project's root to test commands: it has testdata/, and scripts/run,
// which runs the built program. The programs are on the path.
class WorkFolder {
 public:
  WorkFolder();

  ProgramResult Run(ProgramRun run) const;
  std::string PathOf(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& text) const;
  // Returns the names of the files that commands wrote.
  std::set<std::string> Files() const;

 private:
  TemporaryFolder folder_;
};

}  // namespace ckplan
