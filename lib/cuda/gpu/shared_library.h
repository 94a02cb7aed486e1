// The vendor's libraries, found and opened at run time: ckexec starts on machines that lack them,
// and a ckexec built elsewhere uses those that are there.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"

namespace ckplan::cuda {

// Where a library may lie, in this order: the folders that CKEXEC_CUDA_PATH names (separated by
// colons), the loader's own path (an empty entry), a toolkit, and the Python environments that
// bring these libraries along (.../site-packages/nvidia/*/lib).
std::vector<std::string> LibraryFolders();

// An open shared library. It stays open until the program ends: the libraries have threads and
// handlers of their own, which do not survive their being closed.
class SharedLibrary {
 public:
  // The first of `names` that opens in the first folder where one does. kUnsupported: none does;
  // the error names what was looked for, where, and what to do.
  static Result<SharedLibrary> Open(const std::string& what, const std::vector<std::string>& names,
                                    const std::vector<std::string>& folders);

  const std::string& path() const { return path_; }

  // Fills `function` with the address of `symbol`. kUnsupported: the library has no such symbol.
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
