#include "cli/testing/work_folder.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/common/files.h"

namespace ckplan {

namespace fs = std::filesystem;

WorkFolder::WorkFolder() {
  fs::create_directories(folder_.path() / "scripts");
  fs::create_directories(folder_.path() / ".bin");
  fs::create_directory_symlink(kProject / "testdata", folder_.path() / "testdata");
  fs::create_symlink(CKPLAN_BINARY, folder_.path() / ".bin/ckplan");
  fs::create_symlink(CKPLAN_BINARY, folder_.path() / "scripts/run");
  fs::create_symlink(CKBENCH_BINARY, folder_.path() / ".bin/ckbench");
  if (kExecutor != nullptr) fs::create_symlink(kExecutor, folder_.path() / ".bin/ckexec");
}

ProgramResult WorkFolder::Run(ProgramRun run) const {
  run.folder = folder_.path().string();
  run.environment.push_back("PATH=" + (folder_.path() / ".bin").string() + ":" +
                            std::getenv("PATH"));
  return RunProgram(run);
}

void WorkFolder::Write(const std::string& name, const std::string& text) const {
  CHECK(WriteFiles({{PathOf(name), text}}).ok());
}

std::set<std::string> WorkFolder::Files() const {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (entry.is_regular_file()) names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace ckplan
