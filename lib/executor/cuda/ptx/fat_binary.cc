#include "lib/executor/cuda/ptx/fat_binary.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ckplan::ptx {

namespace {

template <typename T>
T ReadNumber(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Offsets of the fields that are read: of the container's header and of the header of each entry.
constexpr size_t kHeaderSize = 6;       // 16 bits.
constexpr size_t kContentSize = 8;      // 64 bits.
constexpr size_t kEntryKind = 0;        // 16 bits.
constexpr size_t kEntryHeader = 4;      // 32 bits.
constexpr size_t kEntryContent = 8;     // 64 bits.
constexpr size_t kCompressedSize = 16;  // 32 bits. The content is padded.
constexpr size_t kEntryFlags = 40;      // 64 bits.
constexpr size_t kPlainSize = 56;       // 64 bits.
constexpr uint16_t kPtxKind = 1;
constexpr uint64_t kIsZstandard = 0x8000;

// size_t ZSTD_decompress(void* to, size_t capacity, const void* from, size_t size);
using Decompress = size_t (*)(void*, size_t, const void*, size_t);

// The library is loaded here rather than linked, so that only these tests need it.
Result<std::string> Decompressed(std::string_view content, size_t plain_size) {
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, "ZSTD_decompress");
  if (found == nullptr) {
    return MakeError(ErrorCode::kUnsupported,
                     "the PTX of an object is compressed, and libzstd.so.1 is not there; install "
                     "libzstd1");
  }
  const auto decompress = reinterpret_cast<Decompress>(found);
  std::string text(plain_size, '\0');
  if (decompress(text.data(), text.size(), content.data(), content.size()) != plain_size) {
    return MakeError(ErrorCode::kInvalidInput, "the compressed PTX of an object is damaged");
  }
  return text;
}

Result<std::string> TextOf(const unsigned char* entry) {
  std::string_view content(
      reinterpret_cast<const char*>(entry) + ReadNumber<uint32_t>(entry + kEntryHeader),
      ReadNumber<uint64_t>(entry + kEntryContent));
  std::string text(content);
  if ((ReadNumber<uint64_t>(entry + kEntryFlags) & kIsZstandard) != 0) {
    content = content.substr(0, ReadNumber<uint32_t>(entry + kCompressedSize));
    CKPLAN_ASSIGN_OR_RETURN(text, Decompressed(content, ReadNumber<uint64_t>(entry + kPlainSize)));
  }
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.find(".version") != std::string::npos) return text;
  return MakeError(ErrorCode::kUnsupported,
                   "the PTX of an object is compressed in a way that is not known; compile it with "
                   "--no-compress");
}

}  // namespace

Result<std::string> PtxIn(const unsigned char* container) {
  const unsigned char* at = container + ReadNumber<uint16_t>(container + kHeaderSize);
  const unsigned char* const end = at + ReadNumber<uint64_t>(container + kContentSize);
  while (at < end) {
    if (ReadNumber<uint16_t>(at + kEntryKind) == kPtxKind) return TextOf(at);
    at += ReadNumber<uint32_t>(at + kEntryHeader) + ReadNumber<uint64_t>(at + kEntryContent);
  }
  return MakeError(ErrorCode::kUnsupported,
                   "an object holds no PTX; compile it for a virtual architecture");
}

}  // namespace ckplan::ptx
