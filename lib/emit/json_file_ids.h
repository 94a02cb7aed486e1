// From the ids that a file gives to things, any distinct integers from 0 to 2^63 - 1, to their
// positions in the graph that is read from it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "lib/emit/json_reader.h"

namespace ckplan {

template <typename IdType>
class FileIds {
 public:
  // `kind` says in faults what has the id: "tensor".
  void Add(const JsonView& id, std::string_view kind, IdType position) {
    if (!id.is_file_id()) return;  // Reported when it was read.
    if (!positions_.emplace(id.Integer(), position).second) {
      id.Fault(fmt::format("another {} has the id {} too; ids must be unique", kind, id.Integer()));
    }
  }
  // None, and a fault, if nothing has the id.
  IdType Find(const JsonView& id, std::string_view kind) const {
    const int64_t number = id.Integer();
    if (!id.is_file_id()) return IdType();
    const auto found = positions_.find(number);
    if (found != positions_.end()) return found->second;
    id.Fault(fmt::format("no {} has the id {}", kind, number));
    return IdType();
  }

 private:
  std::unordered_map<int64_t, IdType> positions_;
};

// Whether it is an array of two; if not, a fault says what the two must be: "[output, input]".
inline bool ExpectPair(const JsonView& json, std::string_view what) {
  if (json.is_array() && json.size() == 2) return true;
  json.Fault(fmt::format("must be a pair {}", what));
  return false;
}

}  // namespace ckplan
