#include "lib/executor/cuda/testing/ptx/module_text.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace ckplan::ptx {

namespace {

template <typename T>
T ReadNumber(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Offsets of the fields that we read, in the container's header and each entry's header.
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

// Loaded here rather than linked, so that only these tests need it.
Result<std::string> Decompressed(std::string_view content, size_t plain_size) {
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, "ZSTD_decompress");
  if (found == nullptr) {
    return MakeError(ErrorCode::kUnsupported,
                     "the PTX of an object is compressed, and libzstd.so.1 is missing; install "
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
                   "the PTX of an object has an unknown compression; compile it with "
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

namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Splits at white space.
std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !IsSpace(text[i])) continue;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

// Returns the position after the bracket that closes the one at `open`.
size_t EndOfBrackets(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '(') ++depth;
    if (text[i] == '}' || text[i] == ')') --depth;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

StatementText ReadStatement(std::string_view text) {
  StatementText statement{text, {}, false, {}, {}};
  std::string_view rest = text;
  if (rest.front() == '@') {
    const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    statement.guard = rest.substr(1, end - 1);
    rest = Trimmed(rest.substr(end));
    if (!statement.guard.empty() && statement.guard.front() == '!') {
      statement.guard_is_negated = true;
      statement.guard.remove_prefix(1);
    }
  }
  const size_t end = std::min(rest.find_first_of(" \t\n"), rest.size());
  statement.words = SplitTrimmed(rest.substr(0, end), '.');
  statement.operands = SplitTrimmed(rest.substr(end), ',');
  return statement;
}

Result<std::vector<VariableText>> ReadParameters(std::string_view text) {
  std::vector<VariableText> parameters;
  for (const std::string_view part : SplitTrimmed(text, ',')) {
    CKPLAN_ASSIGN_OR_RETURN(VariableText parameter, ReadVariable(part));
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace

std::vector<std::string_view> SplitTrimmed(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '{' || text[i] == '(' || text[i] == '[') ++depth;
      if (text[i] == '}' || text[i] == ')' || text[i] == ']') --depth;
      if (text[i] != separator || depth > 0) continue;
    }
    const std::string_view part = Trimmed(text.substr(begin, i - begin));
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

Result<VariableText> ReadVariable(std::string_view text) {
  VariableText variable;
  std::string_view declaration = text;
  if (const size_t equals = text.find('='); equals != std::string_view::npos) {
    declaration = text.substr(0, equals);
    const size_t open = text.find('{', equals);
    if (open != std::string_view::npos) {
      const size_t close = EndOfBrackets(text, open);
      for (const std::string_view part :
           SplitTrimmed(text.substr(open + 1, close - open - 2), ',')) {
        variable.contents.push_back(static_cast<uint8_t>(NumberIn(part)));
      }
    }
  }
  const std::vector<std::string_view> words = WordsOf(declaration);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == ".align" && i + 1 < words.size()) {
      variable.alignment = NumberIn(words[++i]);
    } else if (word == ".visible" || word == ".weak") {
      continue;
    } else if (word.front() == '.') {
      (variable.space.empty() ? variable.space : variable.type) = word.substr(1);
    } else {
      const size_t bracket = std::min(word.find('['), word.size());
      variable.name = word.substr(0, bracket);
      if (bracket < word.size()) variable.elements = NumberIn(word.substr(bracket + 1));
    }
  }
  if (!variable.name.empty() && !variable.type.empty()) return variable;
  return MakeError(ErrorCode::kUnsupported, "not a declaration: " + std::string(text));
}

std::vector<StatementText> ReadBody(std::string_view body) {
  std::vector<StatementText> statements;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    const bool is_first = Trimmed(body.substr(begin, i - begin)).empty();
    if ((c == '{' || c == '}') && is_first) {
      begin = i + 1;  // Blocks have no meaning of their own.
      continue;
    }
    if (c == '{' || c == '(') ++depth;
    if (c == '}' || c == ')') --depth;
    const std::string_view text = Trimmed(body.substr(begin, i - begin));
    if (c == ':' && text.find_first_of(" \t\n") == std::string_view::npos) {
      statements.push_back({body.substr(begin, i - begin), {}, false, {text}, {}});
      statements.back().words[0] =
          std::string_view(text.data(), static_cast<size_t>(body.data() + i + 1 - text.data()));
      begin = i + 1;
    } else if (c == ';' && depth == 0) {
      if (!text.empty()) statements.push_back(ReadStatement(text));
      begin = i + 1;
    }
  }
  return statements;
}

ModuleText::ModuleText(std::string_view text) {
  text_.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") i = std::min(text.find('\n', i), text.size() - 1);
    text_.push_back(text[i]);
  }
}

Result<ModuleText> ModuleText::Read(std::string_view text) {
  ModuleText module(text);
  CKPLAN_RETURN_IF_ERROR(module.ReadAll());
  return module;
}

Result<Done> ModuleText::ReadAll() {
  const std::string_view text(text_.data(), text_.size());
  size_t at = 0;
  while ((at = text.find('.', at)) != std::string_view::npos) {
    const size_t end_of_line = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end_of_line - at);
    const size_t entry = std::min(line.find(".entry "), line.find(".func "));
    if (entry == std::string_view::npos) {
      const bool is_variable = line.find(".global ") != std::string_view::npos;
      if (!is_variable) {  // .version, .target and the like take a line.
        at = end_of_line;
        continue;
      }
      const size_t end = std::min(text.find(';', at), text.size());
      CKPLAN_ASSIGN_OR_RETURN(VariableText variable, ReadVariable(text.substr(at, end - at)));
      globals_.push_back(std::move(variable));
      at = end + 1;
      continue;
    }
    FunctionText function;
    function.is_kernel = line.substr(entry, 7) == ".entry ";
    at += entry + (function.is_kernel ? 7 : 6);
    size_t open = text.find('(', at);
    if (open == std::string_view::npos) break;
    if (!function.is_kernel && Trimmed(text.substr(at, open - at)).empty()) {
      const size_t close = EndOfBrackets(text, open);
      CKPLAN_ASSIGN_OR_RETURN(function.results,
                              ReadParameters(text.substr(open + 1, close - open - 2)));
      at = close;
      open = std::min(text.find('(', at), text.size());
    }
    function.name = Trimmed(text.substr(at, open - at));
    const size_t close = EndOfBrackets(text, open);
    CKPLAN_ASSIGN_OR_RETURN(function.parameters,
                            ReadParameters(text.substr(open + 1, close - open - 2)));
    const size_t brace = text.find_first_of("{;", close);
    if (brace == std::string_view::npos) break;
    at = brace + 1;
    if (text[brace] == ';') continue;  // Declared here, defined elsewhere.
    const std::string_view limits = text.substr(close, brace - close);
    if (const size_t most = limits.find(".maxntid"); most != std::string_view::npos) {
      function.max_threads = NumberIn(Trimmed(limits.substr(most + 8)));
    }
    at = EndOfBrackets(text, brace);
    function.body = text.substr(brace + 1, at - brace - 2);
    functions_.push_back(std::move(function));
  }
  return Done{};
}

std::string_view FindContractible(std::string_view text) {
  for (const std::string_view name :
       {"add.f32", "sub.f32", "mul.f32", "add.f64", "sub.f64", "mul.f64"}) {
    const size_t at = text.find(name);
    if (at != std::string_view::npos) return text.substr(at, name.size());
  }
  return {};
}

}  // namespace ckplan::ptx
