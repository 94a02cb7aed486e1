#include "lib/executor/cuda/gpu/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

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

void AddPackages(const std::string& prefix, std::vector<std::string>& folders) {
  AddMatches(prefix + "/lib/python3*/site-packages/nvidia/*/lib", folders);
  AddMatches(prefix + "/lib/python3*/dist-packages/nvidia/*/lib", folders);
}

// Adds an environment's folders: pip and uv packages, and conda's own libraries.
void AddEnvironment(const std::string& prefix, std::vector<std::string>& folders) {
  AddPackages(prefix, folders);
  AddMatches(prefix + "/lib", folders);
  AddMatches(prefix + "/targets/*/lib", folders);
}

// Adds the environment of each python3 on the PATH, even if it is not activated. A python3 is often
// a link: the environment is the link's folder (venv, uv) or the target's.
void AddEnvironmentsOnPath(std::vector<std::string>& folders) {
  std::vector<std::string> programs;
  if (const char* path = std::getenv("PATH")) AddListed(path, programs);
  for (const std::string& folder : programs) {
    const std::string program = folder + "/python3";
    if (access(program.c_str(), X_OK) != 0) continue;
    AddEnvironment(folder + "/..", folders);
    std::error_code error;
    const std::filesystem::path target = std::filesystem::canonical(program, error);
    if (!error) AddEnvironment(target.parent_path().parent_path(), folders);
  }
}

void AddPythonFolders(std::vector<std::string>& folders) {
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* prefix = std::getenv(variable)) AddEnvironment(prefix, folders);
  }
  AddEnvironmentsOnPath(folders);
  if (const char* home = std::getenv("HOME")) AddPackages(std::string(home) + "/.local", folders);
  for (const char* prefix : {"/usr/local", "/usr"}) AddPackages(prefix, folders);
  AddEnvironment("/opt/conda", folders);
}

// ---- What to install ----------------------------------------------------------------------------

struct Package {
  std::string_view library;  // The start of the library's name.
  std::string_view advice;
};
constexpr Package kPackages[] = {
    {"libcublas.so.12", "it (pip install nvidia-cublas-cu12)"},
    {"libcublasLt.so.12", "it (pip install nvidia-cublas-cu12)"},
    {"libnvrtc.so.12", "it (pip install nvidia-cuda-nvrtc-cu12)"},
    {"libcublas", "it (pip install nvidia-cublas)"},
    {"libcudnn", "it (pip install nvidia-cudnn-cu13)"},
    {"libnvrtc", "it (pip install nvidia-cuda-nvrtc)"},
    {"libcudart", "it (pip install nvidia-cuda-runtime)"},
    {"libz.so", "zlib (zlib1g in Debian and Ubuntu)"},
    {"libstdc++", "the C++ library (libstdc++6 in Debian and Ubuntu)"},
    {"libgcc_s", "GCC's library (libgcc-s1 in Debian and Ubuntu)"},
};

std::string AdviceFor(std::string_view library) {
  for (const Package& package : kPackages) {
    if (library.substr(0, package.library.size()) == package.library) {
      return fmt::format("install {}", package.advice);
    }
  }
  return fmt::format("install the package that has {}", library);
}

// Why a library could not be opened. The loader's message starts with the file that it could not
// open, which may be a dependency.
struct OpenFailure {
  std::string library;  // The path, or the name on the loader's path.
  std::string message;

  bool IsAbsent() const { return message.find("No such file") != std::string::npos; }
  std::string MissingFile() const { return IsAbsent() ? message.substr(0, message.find(':')) : ""; }
  // True if the library itself does not exist.
  bool IsLibraryMissing() const { return MissingFile() == library; }
  std::string Describe() const {
    if (!IsAbsent()) return fmt::format("{} cannot be opened ({})", library, message);
    return fmt::format("{} needs {}, which this machine lacks", library, MissingFile());
  }
  std::string Advice() const { return IsAbsent() ? AdviceFor(MissingFile()) : "reinstall it"; }
};

}  // namespace

std::vector<std::string> LibraryFolders() {
  std::vector<std::string> folders;
  if (const char* list = std::getenv(kVariable)) AddListed(list, folders);
  folders.emplace_back();
  AddMatches("/usr/local/cuda/lib64", folders);
  AddPythonFolders(folders);
  return folders;
}

std::vector<std::string> FoldersOfPython() {
  std::vector<std::string> folders;
  constexpr const char* kQuestion =
      "python3 -c 'import nvidia; print(*nvidia.__path__, sep=\"\\n\")' 2>/dev/null";
  FILE* const answer = popen(kQuestion, "r");
  if (answer == nullptr) return folders;
  char line[4096];
  while (std::fgets(line, sizeof(line), answer) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    if (line[0] == '/') AddMatches(std::string(line) + "/*/lib", folders);
  }
  pclose(answer);
  return folders;
}

Result<SharedLibrary> SharedLibrary::Open(const std::string& what,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& folders) {
  std::vector<OpenFailure> failures;
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      const std::string path = folder.empty() ? name : folder + "/" + name;
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (handle != nullptr) return SharedLibrary(handle, path);
      OpenFailure failure{path, dlerror()};
      if (!failure.IsLibraryMissing()) failures.push_back(std::move(failure));
    }
  }
  if (failures.empty()) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("{} was not found: no {} on the loader's path, in a CUDA toolkit or in an "
                    "environment of Python or conda; {}, or set {} to its folder",
                    what, names.front(), AdviceFor(names.front()), kVariable));
  }
  Error error =
      MakeError(ErrorCode::kUnsupported,
                fmt::format("{} was not found: {}; {}, or set {} to another folder", what,
                            failures.front().Describe(), failures.front().Advice(), kVariable));
  for (size_t i = 1; i < failures.size(); ++i) error.notes.push_back(failures[i].Describe());
  return error;
}

Result<void*> SharedLibrary::Find(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (address != nullptr) return address;
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("{} has no {}; install a newer one", path_, symbol));
}

}  // namespace ckplan::cuda
