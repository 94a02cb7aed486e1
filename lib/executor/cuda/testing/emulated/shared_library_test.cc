// Tests the search for libraries in the layouts of pip, uv, conda, pyenv and linked interpreters.
#include "lib/executor/cuda/gpu/shared_library.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/testing/temporary_folder.h"

namespace ckplan::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libckplan_layout.so.1";

// A machine whose files are in a folder of their own, and on which no variable leads elsewhere.
class Machine {
 public:
  Machine() {
    for (const char* name : {"CKEXEC_CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "PATH",
                             "PYTHONPATH", "LD_LIBRARY_PATH"}) {
      const char* value = getenv(name);
      saved_.emplace_back(name, value == nullptr ? std::nullopt : std::optional(value));
      unsetenv(name);
    }
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    for (const auto& [name, value] : saved_) {
      value ? setenv(name, value->c_str(), 1) : unsetenv(name);
    }
  }

  std::string At(const std::string& path) const { return folder_ / path; }
  void Set(const char* variable, const std::string& path) const {
    setenv(variable, At(path).c_str(), 1);
  }
  // Puts a copy of the library `from` into this folder.
  void Install(const std::string& folder, const char* from = CKPLAN_PROBE) const {
    fs::create_directories(At(folder));
    fs::copy_file(from, At(folder + "/" + kName));
  }
  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(At(path)).parent_path());
    std::ofstream(At(path)) << text;
    fs::permissions(At(path), fs::perms::owner_all);
  }
  void Link(const std::string& path, const std::string& target) const {
    fs::create_directories(fs::path(At(path)).parent_path());
    fs::create_symlink(At(target), At(path));
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::pair<const char*, std::optional<std::string>>> saved_;
};

Result<SharedLibrary> Search() {
  return LoadFromFolders([](const std::vector<std::string>& folders) {
    return SharedLibrary::Open("the probe", {"libckplan_layout.so.2", kName}, folders);
  });
}

void CheckFoundIn(const Machine& machine, const std::string& folder) {
  const Result<SharedLibrary> found = Search();
  REQUIRE(found.ok());
  CHECK(fs::canonical(found->path()) == fs::canonical(machine.At(folder + "/" + kName)));
  int (*probe)() = nullptr;
  REQUIRE(found->Find("CkplanProbe", probe).ok());
  CHECK(probe() == 7);
}

TEST_CASE("shared library: it is found where pip, uv and conda install it") {
  struct Row {
    const char* what;
    const char* variable;
    const char* value;
    const char* folder;
  };
  for (const Row& row :
       {Row{"named", "CKEXEC_CUDA_PATH", "own", "own"},
        Row{"pip in an active environment", "VIRTUAL_ENV", "venv",
            "venv/lib/python3.12/site-packages/nvidia/cudnn/lib"},
        Row{"uv, CUDA 13", "VIRTUAL_ENV", "project/.venv",
            "project/.venv/lib/python3.13/site-packages/nvidia/cu13/lib"},
        Row{"pip install --user", "HOME", "home",
            "home/.local/lib/python3.11/site-packages/nvidia/cublas/lib"},
        Row{"pip of Debian", "VIRTUAL_ENV", "usr",
            "usr/lib/python3/dist-packages/nvidia/cudnn/lib"},
        Row{"conda", "CONDA_PREFIX", "conda/envs/x", "conda/envs/x/lib"},
        Row{"conda's CUDA", "CONDA_PREFIX", "conda", "conda/targets/x86_64-linux/lib"},
        Row{"pip in conda", "CONDA_PREFIX", "conda",
            "conda/lib/python3.10/site-packages/nvidia/cudnn/lib"}}) {
    CAPTURE(row.what);
    const Machine machine;
    machine.Install(row.folder);
    CHECK_FALSE(Search().ok());
    machine.Set(row.variable, row.value);
    CheckFoundIn(machine, row.folder);
  }
}

TEST_CASE("shared library: it is found beside a python3 on the PATH, and where that leads") {
  const Machine beside;
  beside.Write("base/bin/python3.12", "#!/bin/false\n");
  beside.Link("venv/bin/python3", "base/bin/python3.12");
  beside.Install("venv/lib/python3.12/site-packages/nvidia/cudnn/lib");
  beside.Set("PATH", "venv/bin");
  CheckFoundIn(beside, "venv/lib/python3.12/site-packages/nvidia/cudnn/lib");

  const Machine linked;
  linked.Write("opt/python/bin/python3.11", "#!/bin/false\n");
  linked.Link("usr/bin/python3", "opt/python/bin/python3.11");
  linked.Install("opt/python/lib/python3.11/site-packages/nvidia/cudnn/lib");
  linked.Set("PATH", "usr/bin");
  CheckFoundIn(linked, "opt/python/lib/python3.11/site-packages/nvidia/cudnn/lib");
}

TEST_CASE("shared library: a launcher of pyenv is asked which packages its python3 has") {
  const Machine machine;
  const std::string packages = ".pyenv/versions/3.12.1/lib/python3.12/site-packages/nvidia";
  machine.Install(packages + "/cudnn/lib");
  machine.Write(".pyenv/shims/python3", "#!/bin/sh\necho '" + machine.At(packages) + "'\n");
  machine.Set("PATH", ".pyenv/shims");
  CheckFoundIn(machine, packages + "/cudnn/lib");
}

TEST_CASE("shared library: a real python3 names the folders of all parts of its package") {
  const Machine machine;
  setenv("PATH", "/usr/bin:/bin", 1);
  if (!fs::exists("/usr/bin/python3")) return;
  fs::create_directories(machine.At("one/nvidia/cublas/lib"));
  fs::create_directories(machine.At("two/nvidia/cudnn/lib"));
  setenv("PYTHONPATH", (machine.At("one") + ":" + machine.At("two")).c_str(), 1);
  CHECK(FoldersOfPython() ==
        std::vector{machine.At("one/nvidia/cublas/lib"), machine.At("two/nvidia/cudnn/lib")});
}

TEST_CASE("shared library: without it, or without python3, the message says what to install") {
  const Machine machine;
  CHECK(FoldersOfPython().empty());
  const auto missing = SharedLibrary::Open("cuDNN 9", {"libcudnn.so.9"}, {machine.At("none")});
  REQUIRE(!missing.ok());
  CHECK(missing.error().code == ErrorCode::kUnsupported);
  CHECK(missing.error().message ==
        "cuDNN 9 was not found: no libcudnn.so.9 on the loader's path, in a CUDA toolkit or in an "
        "environment of Python or conda; install it (pip install nvidia-cudnn-cu13), or set "
        "CKEXEC_CUDA_PATH to its folder");
}

TEST_CASE("shared library: what a library needs and the machine lacks is named") {
  const Machine machine;
  machine.Install("own", CKPLAN_PROBE_NEEDING);
  machine.Set("CKEXEC_CUDA_PATH", "own");
  const Result<SharedLibrary> found = Search();
  REQUIRE(!found.ok());
  CHECK(found.error().code == ErrorCode::kUnsupported);
  CHECK(found.error().message ==
        "the probe was not found: " + machine.At("own/") + kName +
            " needs libckplan_probe_missing.so, which this machine lacks; install the package that "
            "has libckplan_probe_missing.so, or set CKEXEC_CUDA_PATH to another folder");
}

TEST_CASE("shared library: a file that is no library is named, and a good one is taken instead") {
  const Machine machine;
  machine.Write(std::string("own/") + kName, "no library");
  machine.Set("CKEXEC_CUDA_PATH", "own");
  const Result<SharedLibrary> found = Search();
  REQUIRE(!found.ok());
  CHECK(found.error().message.find(machine.At("own/") + kName + " cannot be opened (") !=
        std::string::npos);
  machine.Install("conda/lib");
  machine.Set("CONDA_PREFIX", "conda");
  CheckFoundIn(machine, "conda/lib");
}

}  // namespace
}  // namespace ckplan::cuda
