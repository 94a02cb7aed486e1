// Writes messages in the protobuf wire format, for the few external formats that we emit: each
// caller knows its field numbers. The protobuf library and its generated code are used only in
// lib/model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ckplan {

class ProtoWriter {
 public:
  // Signed values are written like int32 and int64, not like sint.
  ProtoWriter& Integer(uint32_t field, int64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoWriter& Text(uint32_t field, std::string_view text) {
    Varint(uint64_t{field} << 3 | kLengthDelimited);
    Varint(text.size());
    bytes_ += text;
    return *this;
  }
  ProtoWriter& Message(uint32_t field, const ProtoWriter& message) {
    return Text(field, message.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kLengthDelimited = 2;

  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace ckplan
