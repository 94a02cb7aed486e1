#include "lib/files/model/wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ckplan {

namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

std::string LengthHeader(uint32_t number, uint64_t length) {
  return Varint(uint64_t{number} << 3 | 2) + Varint(length);
}

}  // namespace

bool WireReader::ReadVarint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::optional<WireField> WireReader::Next() {
  if (rest_.empty() || is_damaged_) return std::nullopt;
  const char* start = rest_.data();
  is_damaged_ = true;  // This stays set until the whole field is read.
  uint64_t tag = 0;
  if (!ReadVarint(tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return std::nullopt;
  WireField field;
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  size_t length = 0;
  switch (field.type) {
    case WireType::kVarint:
      if (!ReadVarint(field.varint)) return std::nullopt;
      break;
    case WireType::kFixed64:
      length = 8;
      break;
    case WireType::kFixed32:
      length = 4;
      break;
    case WireType::kLength:
      if (!ReadVarint(field.varint)) return std::nullopt;
      length = field.varint;
      break;
    default:  // Groups went out of use before ONNX was made.
      return std::nullopt;
  }
  if (length > rest_.size()) return std::nullopt;
  field.payload = rest_.substr(0, length);
  rest_.remove_prefix(length);
  field.whole = {start, static_cast<size_t>(rest_.data() - start)};
  is_damaged_ = false;
  return field;
}

void Rope::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == bytes.data()) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + bytes.size()};
  } else {
    pieces_.push_back(bytes);
  }
}

void Rope::AppendOwned(std::string bytes) {
  owned_.push_back(std::move(bytes));
  size_ += owned_.back().size();
  pieces_.emplace_back(owned_.back());
}

void Rope::AppendMessage(uint32_t number, Rope content) {
  AppendOwned(LengthHeader(number, content.size_));
  for (const std::string_view piece : content.pieces_) Append(piece);
  owned_.splice(owned_.end(), content.owned_);
}

void Rope::AppendString(uint32_t number, std::string bytes) {
  AppendOwned(LengthHeader(number, bytes.size()));
  AppendOwned(std::move(bytes));
}

std::string Rope::Flatten() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const std::string_view piece : pieces_) bytes += piece;
  return bytes;
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const auto failure = [&path](std::string_view why) {
    return MakeError(ErrorCode::kIo, fmt::format("cannot read \"{}\": {}", path, why));
  };
  // Otherwise opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failure(std::strerror(errno));
  MappedFile file;
  struct stat info {};
  const bool is_known = ::fstat(descriptor, &info) == 0;
  if (!is_known || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return failure(is_known && S_ISDIR(info.st_mode)
                       ? "it is a directory, not a regular file; name the .onnx file in it"
                       : "it is not a regular file");
  }
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ > 0) {
    void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      const int reason = errno;
      ::close(descriptor);
      return failure(std::strerror(reason));
    }
    file.data_ = static_cast<const char*>(data);
  }
  ::close(descriptor);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace ckplan
