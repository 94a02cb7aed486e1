// The name of a file that is to vanish unless it is kept, however the program ends.
#pragma once

#include <string>

namespace ckplan {

class TemporaryName {
 public:
  explicit TemporaryName(std::string path);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();  // Removes the file.

  const std::string& path() const { return path_; }
  void Keep();  // The file has another name by now, or is to stay.

  // Removes the files of all names, without memory: for the end of a program that has none left.
  static void RemoveAll();

 private:
  std::string path_;
  TemporaryName* next_;  // In a list of all, the latest first.
  static TemporaryName* latest_;
};

}  // namespace ckplan
