// Names a file that is removed unless Keep is called, however the program ends.
#pragma once

#include <string>

namespace ckplan {

class TemporaryName {
 public:
  // The file will be removed from here on, whether or not it exists yet.
  explicit TemporaryName(std::string path);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();  // Removes the file.

  const std::string& path() const;
  void Keep();  // The file has been renamed, or is to stay.

  // Removes all registered files. It may be called at the end of a program that has no memory left,
  // and from signal handlers, which may run at any time and in any thread.
  static void RemoveAll();

 private:
  struct Entry;
  Entry* const entry_;
};

}  // namespace ckplan
