// Thrown where memory runs out in a function that returns no error: a GPU loads the code of a
// kernel when that first runs, for example. The program ends with its exit code for too little
// memory.
#pragma once

#include <new>
#include <string>
#include <utility>

namespace ckplan {

class OutOfMemory : public std::bad_alloc {
 public:
  // What ran out, where, and what to do.
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace ckplan
