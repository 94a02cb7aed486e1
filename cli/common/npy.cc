#include "cli/common/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "lib/base/text.h"
#include "lib/planning/plan/set_input.h"

namespace ckplan {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyHeader {
  std::string type;  // "<i8"
  bool is_fortran = false;
  std::vector<int64_t> shape;
  size_t data = 0;  // Where the elements begin.
};

// Returns what follows "'key':" in the header, which is a Python dictionary.
std::optional<std::string_view> ValueAfter(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  if (at == header.npos) return std::nullopt;
  const size_t colon = header.find(':', at);
  if (colon == header.npos) return std::nullopt;
  std::string_view rest = header.substr(colon + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::optional<std::vector<int64_t>> ShapeIn(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  const size_t end = text.find(')');
  if (end == text.npos) return std::nullopt;
  std::vector<int64_t> shape;
  for (size_t at = 1; at < end;) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    int64_t size = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + end, size);
    if (read.ec != std::errc() || size < 0) return std::nullopt;
    shape.push_back(size);
    at = static_cast<size_t>(read.ptr - text.data());
  }
  return shape;
}

std::optional<NpyHeader> ReadHeader(std::string_view bytes) {
  constexpr size_t kFixed = 8;  // The magic and the version.
  if (!bytes.starts_with(kMagic) || bytes.size() < kFixed + 4) return std::nullopt;
  const size_t width = bytes[6] == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = width; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[kFixed + i]);
  }
  NpyHeader header;
  header.data = kFixed + width + length;
  if (header.data > bytes.size()) return std::nullopt;
  const std::string_view text = bytes.substr(kFixed + width, length);
  const auto type = ValueAfter(text, "descr");
  const auto order = ValueAfter(text, "fortran_order");
  const auto shape = ValueAfter(text, "shape");
  if (!type || !order || !shape || !type->starts_with('\'')) return std::nullopt;
  header.type = type->substr(1, type->find('\'', 1) - 1);
  header.is_fortran = order->starts_with("True");
  const auto sizes = ShapeIn(*shape);
  if (!sizes) return std::nullopt;
  header.shape = *sizes;
  return header;
}

template <typename T>
std::string NumberText(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return fmt::format("{}", +value);
}

struct ElementReader {
  std::string_view type;
  size_t bytes;
  std::string (*text)(const char* at);
};
constexpr ElementReader kReaders[] = {
    {"|b1", 1, NumberText<uint8_t>}, {"|i1", 1, NumberText<int8_t>},
    {"|u1", 1, NumberText<uint8_t>}, {"<i2", 2, NumberText<int16_t>},
    {"<i4", 4, NumberText<int32_t>}, {"<i8", 8, NumberText<int64_t>},
    {"<f4", 4, NumberText<float>},   {"<f8", 8, NumberText<double>}};

void AppendArray(const NpyHeader& header, const ElementReader& reader, size_t axis, const char** at,
                 std::string* text) {
  if (axis == header.shape.size()) {
    *text += reader.text(*at);
    *at += reader.bytes;
    return;
  }
  *text += '[';
  for (int64_t i = 0; i < header.shape[axis]; ++i) {
    if (i > 0) *text += ',';
    AppendArray(header, reader, axis + 1, at, text);
  }
  *text += ']';
}

}  // namespace

Result<std::string> NpyAsText(std::string_view bytes, const std::string& path) {
  const std::optional<NpyHeader> header = ReadHeader(bytes);
  if (!header) {
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("{}: not a .npy file, or its header is cut off", path));
  }
  const auto* const reader =
      std::find_if(std::begin(kReaders), std::end(kReaders),
                   [&](const ElementReader& one) { return one.type == header->type; });
  if (reader == std::end(kReaders) || (header->is_fortran && header->shape.size() > 1)) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("{}: an array of {}{}; save booleans, integers or float32 in C order", path,
                    Printable(header->type, kLongestName),
                    header->is_fortran ? " in Fortran order" : ""));
  }
  size_t elements = 1;
  for (const int64_t size : header->shape) {
    if (size == 0 || static_cast<size_t>(size) > kMaxSetNumbers / elements) {
      return MakeError(
          ErrorCode::kUnsupported,
          fmt::format("{}: the array is empty or has more than {} elements", path, kMaxSetNumbers));
    }
    elements *= static_cast<size_t>(size);
  }
  if (bytes.size() - header->data < elements * reader->bytes) {
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("{}: it has {} bytes of data, but its shape needs {}", path,
                                 bytes.size() - header->data, elements * reader->bytes));
  }
  std::string text;
  const char* at = bytes.data() + header->data;
  AppendArray(*header, *reader, 0, &at, &text);
  return text;
}

}  // namespace ckplan
