// Writes Python's pickle format, protocol 2, for types that JSON has as well: dictionaries, lists,
// texts and integers. PyTorch's memory viewer, which has its own pickle reader, supports everything
// used here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

//   PickleWriter pickle;
//   pickle.BeginDict();
//   pickle.Key("size").Integer(12);
//   pickle.Key("frames").BeginList();
//   pickle.End().End();
//   std::move(pickle).Finish()       {"size": 12, "frames": []}
class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  PickleWriter& BeginDict();
  PickleWriter& BeginList();
  PickleWriter& End();
  PickleWriter& Key(std::string_view key);
  PickleWriter& Text(std::string_view text);  // `text` must be UTF-8.
  PickleWriter& Integer(int64_t value);

  std::string Finish() &&;

 private:
  struct Level {
    bool is_list = false;
    size_t items = 0;
  };
  void BeginItem();
  void LittleEndian(uint64_t value, int bytes);

  std::string bytes_;
  std::vector<Level> levels_;
};

}  // namespace ckplan
