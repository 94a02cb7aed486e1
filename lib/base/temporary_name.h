// The name of a file that is to vanish unless it is kept, however the program ends.
#pragma once

#include <string>

namespace ckplan {

class TemporaryName {
 public:
  // From here on the file vanishes, whether or not there is one yet.
  explicit TemporaryName(std::string path);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();  // Removes the file.

  const std::string& path() const;
  void Keep();  // The file has another name by now, or is to stay.

  // Removes the files of all names: for the end of a program that may have no memory left, and for
  // handlers of signals, which may come at any time and in any thread.
  static void RemoveAll();

 private:
  struct Entry;
  Entry* const entry_;
};

}  // namespace ckplan
