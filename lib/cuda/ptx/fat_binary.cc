#include "lib/cuda/ptx/fat_binary.h"

#include <cstdint>
#include <cstring>

namespace ckplan::ptx {

namespace {

template <typename T>
T ReadNumber(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Offsets of the fields that are read: of the container's header and of the header of each entry.
constexpr size_t kHeaderSize = 6;    // 16 bits.
constexpr size_t kContentSize = 8;   // 64 bits.
constexpr size_t kEntryKind = 0;     // 16 bits.
constexpr size_t kEntryHeader = 4;   // 32 bits.
constexpr size_t kEntryContent = 8;  // 64 bits.
constexpr uint16_t kPtxKind = 1;

}  // namespace

Result<std::string_view> PtxIn(const unsigned char* container) {
  const unsigned char* at = container + ReadNumber<uint16_t>(container + kHeaderSize);
  const unsigned char* const end = at + ReadNumber<uint64_t>(container + kContentSize);
  while (at < end) {
    const auto header = ReadNumber<uint32_t>(at + kEntryHeader);
    const auto content = ReadNumber<uint64_t>(at + kEntryContent);
    if (ReadNumber<uint16_t>(at + kEntryKind) == kPtxKind) {
      std::string_view text(reinterpret_cast<const char*>(at) + header, content);
      text = text.substr(0, text.find('\0'));
      if (text.find(".version") != std::string_view::npos) return text;
      return MakeError(ErrorCode::kUnsupported,
                       "the PTX of an object is compressed; compile it with --no-compress");
    }
    at += header + content;
  }
  return MakeError(ErrorCode::kUnsupported,
                   "an object holds no PTX; compile it for a virtual architecture");
}

}  // namespace ckplan::ptx
