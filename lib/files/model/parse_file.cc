#include "lib/files/model/parse_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>

#include "lib/files/model/graph_hash.h"
#include "lib/files/model/other_format.h"
#include "lib/files/model/wire.h"
#include "onnx/defs/parser.h"

namespace ckplan {

namespace {

// Contents of tensors up to this size are kept while loading: anything that a shape is computed
// from is far smaller, and any significant weight is larger.
constexpr uint64_t kLargestKeptTensorBytes = 4096;

// Protobuf does not distinguish files that are nested too deeply from damaged ones.
Error NotParsed(std::string_view source, const std::string& path) {
  RewriteOptions whole;
  whole.largest_tensor_bytes = 0;
  const auto copied = RewriteModel(source, whole, path);
  return copied.ok() ? NotOnnx(path, "its protobuf encoding is damaged") : copied.error();
}

Result<ParsedFile> ParseBinary(std::string_view source, const std::string& path) {
  RewriteOptions options;
  options.largest_tensor_bytes = kLargestKeptTensorBytes;
  CKPLAN_ASSIGN_OR_RETURN(const RewrittenModel stripped, RewriteModel(source, options, path));
  if (stripped.bytes.size() > uint64_t{std::numeric_limits<int>::max()}) {
    return NotOnnx(path, "it exceeds 2 GB even without its weights");
  }
  ParsedFile file;
  const bool is_parsed =
      stripped.has_left_out
          ? file.proto->ParseFromString(stripped.bytes.Flatten())
          : file.proto->ParseFromArray(source.data(), static_cast<int>(source.size()));
  if (!is_parsed) return NotParsed(source, path);
  return file;
}

constexpr int kDeepestText = 100;  // Protobuf reads binary files to this depth.

class QuietCollector final : public google::protobuf::io::ErrorCollector {
 public:
// Protobuf 22 renamed this method. Without a collector, it would print to stderr.
#if GOOGLE_PROTOBUF_VERSION >= 4022000
  void RecordError(int line, google::protobuf::io::ColumnNumber column,
                   absl::string_view message) override {
#else
  void AddError(int line, int column, const std::string& message) override {
#endif
    if (first_.empty()) first_ = fmt::format("line {}:{}: {}", line + 1, column + 1, message);
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

bool EndsWithAny(const std::string& path, std::initializer_list<std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (path.size() > ending.size() && std::string_view(path).ends_with(ending)) return true;
  }
  return false;
}

// ONNX's parser recurses for each graph within a graph and each type within a type.
bool IsNestedTooDeep(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (text[i] == '{' || text[i] == '(') {
      if (++depth > kDeepestText) return true;
    } else if (text[i] == '}' || text[i] == ')') {
      --depth;
    }
  }
  return false;
}

bool IsOnnxText(const std::string& path) { return EndsWithAny(path, {".onnxtxt", ".onnx.txt"}); }
bool IsProtoText(const std::string& path) {
  return EndsWithAny(path, {".textproto", ".pbtxt", ".prototxt", ".onnxtext"});
}

Result<ParsedFile> ParseText(std::string_view source, const std::string& path) {
  ParsedFile file;
  const std::string text(source);
  if (IsOnnxText(path)) {
    if (IsNestedTooDeep(source)) return NestedTooDeep(path);
    onnx::OnnxParser parser(text.c_str());
    if (const auto status = parser.Parse(*file.proto); !status.IsOK()) {
      return NotOnnx(path, status.ErrorMessage().substr(0, 300));
    }
  } else {
    QuietCollector errors;
    google::protobuf::TextFormat::Parser parser;
    parser.SetRecursionLimit(kDeepestText);
    parser.RecordErrorsTo(&errors);
    if (!parser.ParseFromString(text, file.proto.get())) {
      return NotOnnx(path, errors.first().substr(0, 300));
    }
  }
  return file;
}

}  // namespace

bool IsTextModel(const std::string& path) { return IsOnnxText(path) || IsProtoText(path); }

Error NotOnnx(const std::string& path, std::string_view why) {
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("\"{}\" is not a readable ONNX model: {}; check that the file is "
                               "complete, or export it again",
                               path, why));
}

Error NestedTooDeep(const std::string& path) {
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format("\"{}\" is nested too deep: protobuf reads 100 levels, which is about "
                  "30 branches within each other; flatten them, or export it without",
                  path));
}

Result<ParsedFile> ParseModelFile(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  const std::string_view source = mapped.bytes();
  if (source.empty()) return NotOnnx(path, "it is empty");
  if (const auto other = OtherFormatText(source); other && !IsTextModel(path)) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("\"{}\" is {}", path, *other));
  }
  CKPLAN_ASSIGN_OR_RETURN(ParsedFile file,
                          IsTextModel(path) ? ParseText(source, path) : ParseBinary(source, path));
  if (!file.proto->has_graph() || file.proto->graph().node_size() == 0) {
    return NotOnnx(path, "it has no graph with nodes");
  }
  if (file.proto->opset_import_size() == 0) {
    // Files of IR 1 and 2 have no such list and use the first operator set.
    if (file.proto->ir_version() >= 3) return NotOnnx(path, "it imports no operator set");
    file.proto->add_opset_import()->set_version(1);
  }
  file.sha256 = GraphHash(*file.proto);
  return file;
}

}  // namespace ckplan
