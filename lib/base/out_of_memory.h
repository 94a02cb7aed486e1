// Thrown when memory runs out in a function that returns no error: for example, a GPU loads the
// code of a kernel when that kernel first runs. The program then ends with its exit code for too
// little memory.
#pragma once

#include <new>
#include <string>
#include <utility>

namespace ckplan {

class OutOfMemory : public std::bad_alloc {
 public:
  // `message` says what ran out, where, and what to do.
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace ckplan
