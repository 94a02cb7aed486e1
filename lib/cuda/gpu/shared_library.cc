#include "lib/cuda/gpu/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <cstdlib>

namespace ckplan::cuda {

namespace {

constexpr const char* kVariable = "CKEXEC_CUDA_PATH";

void AddListed(const char* list, std::vector<std::string>& folders) {
  std::string rest = list;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    if (colon != 0) folders.push_back(rest.substr(0, colon));
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
}

// Adds the existing folders that match the pattern, in alphabetical order.
void AddMatches(const std::string& pattern, std::vector<std::string>& folders) {
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) folders.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

void AddPythonFolders(std::vector<std::string>& folders) {
  const auto add = [&folders](const std::string& prefix) {
    AddMatches(prefix + "/lib/python3*/site-packages/nvidia/*/lib", folders);
    AddMatches(prefix + "/lib/python3*/dist-packages/nvidia/*/lib", folders);
  };
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* prefix = std::getenv(variable)) add(prefix);
  }
  // The environment of the python3 on the path is included, even if it is not activated.
  std::vector<std::string> programs;
  if (const char* path = std::getenv("PATH")) AddListed(path, programs);
  for (const std::string& folder : programs) {
    if (access((folder + "/python3").c_str(), X_OK) == 0) add(folder + "/..");
  }
  if (const char* home = std::getenv("HOME")) add(std::string(home) + "/.local");
  add("/usr/local");
  add("/usr");
  add("/opt/conda");
}

}  // namespace

std::vector<std::string> LibraryFolders() {
  std::vector<std::string> folders;
  if (const char* list = std::getenv(kVariable)) AddListed(list, folders);
  folders.emplace_back();
  AddMatches("/usr/local/cuda/lib64", folders);
  AddPythonFolders(folders);
  return folders;
}

Result<SharedLibrary> SharedLibrary::Open(const std::string& what,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& folders) {
  std::string last_error;
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      const std::string path = folder.empty() ? name : folder + "/" + name;
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (handle != nullptr) return SharedLibrary(handle, path);
      // A file that exists but cannot be opened is reported; a file that does not exist is ignored.
      const std::string error = dlerror();
      if (error.find("No such file") == std::string::npos) last_error = error;
    }
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{} was not found: no {} on the loader's path, in a CUDA toolkit or in a "
                  "Python environment; install it, or name its folder in {}",
                  what, names.front(), kVariable),
      last_error.empty() ? std::vector<std::string>() : std::vector{last_error}};
}

Result<void*> SharedLibrary::Find(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (address != nullptr) return address;
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("{} has no {}; install a newer one", path_, symbol));
}

}  // namespace ckplan::cuda
