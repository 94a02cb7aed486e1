// What is found wrong while kernels run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ckplan::ptx {

class Findings {
 public:
  void Add(std::string what) { ++counts_[std::move(what)]; }
  bool empty() const { return counts_.empty(); }
  // Maps each finding to the number of times that it was found.
  const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  std::map<std::string, int64_t> counts_;
};

}  // namespace ckplan::ptx
