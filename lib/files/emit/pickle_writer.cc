#include "lib/files/emit/pickle_writer.h"

#include <utility>

#include "lib/base/check.h"

namespace ckplan {
namespace {

// Readers that pass all items of a list to one call fail on very many; pickle itself writes batches
// of this size.
constexpr size_t kBatch = 1000;

constexpr char kMark = '(';
constexpr char kEmptyDict = '}';
constexpr char kEmptyList = ']';
constexpr char kSetItems = 'u';
constexpr char kAppends = 'e';
constexpr char kBinInt = 'J';    // 4 bytes.
constexpr char kLong1 = '\x8a';  // A length in one byte, then that many bytes.
constexpr char kBinUnicode = 'X';
constexpr char kStop = '.';

}  // namespace

void PickleWriter::LittleEndian(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

// Begins an item of a list; values of dictionaries follow their keys.
void PickleWriter::BeginItem() {
  if (levels_.empty() || !levels_.back().is_list) return;
  if (levels_.back().items++ % kBatch != 0 || levels_.back().items == 1) return;
  bytes_ += kAppends;
  bytes_ += kMark;
}

PickleWriter& PickleWriter::BeginDict() {
  BeginItem();
  bytes_ += kEmptyDict;
  bytes_ += kMark;
  levels_.push_back({false, 0});
  return *this;
}

PickleWriter& PickleWriter::BeginList() {
  BeginItem();
  bytes_ += kEmptyList;
  bytes_ += kMark;
  levels_.push_back({true, 0});
  return *this;
}

PickleWriter& PickleWriter::End() {
  bytes_ += levels_.back().is_list ? kAppends : kSetItems;
  levels_.pop_back();
  return *this;
}

PickleWriter& PickleWriter::Key(std::string_view key) {
  CKPLAN_CHECK(!levels_.empty() && !levels_.back().is_list, "keys stand in dictionaries");
  return Text(key);
}

PickleWriter& PickleWriter::Text(std::string_view text) {
  BeginItem();
  bytes_ += kBinUnicode;
  LittleEndian(text.size(), 4);
  bytes_ += text;
  return *this;
}

PickleWriter& PickleWriter::Integer(int64_t value) {
  BeginItem();
  const bool is_small = value >= INT32_MIN && value <= INT32_MAX;
  bytes_ += is_small ? kBinInt : kLong1;
  if (!is_small) bytes_ += '\x08';
  LittleEndian(static_cast<uint64_t>(value), is_small ? 4 : 8);
  return *this;
}

std::string PickleWriter::Finish() && {
  bytes_ += kStop;
  return std::move(bytes_);
}

}  // namespace ckplan
