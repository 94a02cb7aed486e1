// Finds and opens the vendor's libraries at run time, so that ckexec starts on machines without
// them, and a ckexec built elsewhere uses the installed versions.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"

namespace ckplan::cuda {

// Returns the folders to search for a library, in this order: those in CKEXEC_CUDA_PATH (separated
// by colons), the loader's own path (an empty entry), a CUDA toolkit, and Python and conda
// environments: the active ones, those of every python3 on the PATH, and the usual places. pip and
// uv install the libraries in .../site-packages/nvidia/*/lib, conda in lib.
std::vector<std::string> LibraryFolders();

// Runs the first python3 on the PATH to ask where its packages of these libraries are
// (`nvidia.__path__`), and returns their folders. This finds what the file layout doesn't show: the
// version that a pyenv launcher chooses, and the folders in PYTHONPATH.
std::vector<std::string> FoldersOfPython();

// Calls `load` with LibraryFolders and, if that fails, again with FoldersOfPython added. `load`
// returns a Result.
template <typename Load>
auto LoadFromFolders(const Load& load) {
  std::vector<std::string> folders = LibraryFolders();
  auto loaded = load(folders);
  if (loaded.ok()) return loaded;
  const std::vector<std::string> more = FoldersOfPython();
  if (more.empty()) return loaded;
  folders.insert(folders.end(), more.begin(), more.end());
  return load(folders);
}

// An open shared library. It stays open until the program ends, because closing it would break
// threads and handlers that the library has started.
class SharedLibrary {
 public:
  // Searches the folders in order and opens the first of `names` that can be opened. Fails with
  // kUnsupported if none can. The error says what to install: the library, or a missing dependency.
  static Result<SharedLibrary> Open(const std::string& what, const std::vector<std::string>& names,
                                    const std::vector<std::string>& folders);

  const std::string& path() const { return path_; }

  // Sets `function` to the address of `symbol`. Fails with kUnsupported if the library lacks it.
  template <typename Function>
  Result<Done> Find(const char* symbol, Function*& function) const {
    CKPLAN_ASSIGN_OR_RETURN(void* address, Find(symbol));
    function = reinterpret_cast<Function*>(address);
    return Done{};
  }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Result<void*> Find(const char* symbol) const;

  void* handle_;
  std::string path_;
};

}  // namespace ckplan::cuda
