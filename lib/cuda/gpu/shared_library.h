// Finds and opens the vendor's libraries at run time, so that ckexec starts on machines without
// them, and a ckexec built elsewhere uses the installed versions.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"

namespace ckplan::cuda {

// Returns the folders to search for a library, in this order: those in CKEXEC_CUDA_PATH (separated
// by colons), the loader's own path (an empty entry), a CUDA toolkit, and Python environments with
// packages of these libraries (.../site-packages/nvidia/*/lib).
std::vector<std::string> LibraryFolders();

// An open shared library. It stays open until the program ends, because closing it would break the
// threads and handlers that the library has started.
class SharedLibrary {
 public:
  // Searches the folders in order and opens the first of `names` that can be opened. Fails with
  // kUnsupported if there is none; the error says what was searched for, where, and what to do.
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
