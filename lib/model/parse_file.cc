#include "lib/model/parse_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <limits>

#include "lib/model/graph_hash.h"
#include "lib/model/rewrite.h"
#include "lib/model/wire.h"
#include "onnx/defs/parser.h"

namespace ckplan {

namespace {

// Contents of tensors up to this size are kept while loading: anything that a shape is computed
// from is far smaller, any weight that matters is larger.
constexpr uint64_t kLargestKeptTensorBytes = 4096;

Result<ParsedFile> ParseBinary(std::string_view source, const std::string& path) {
  RewriteOptions options;
  options.largest_tensor_bytes = kLargestKeptTensorBytes;
  const auto stripped = RewriteModel(source, options);
  if (!stripped.has_value()) return NotOnnx(path, "its protobuf encoding is damaged");
  if (stripped->bytes.size() > uint64_t{std::numeric_limits<int>::max()}) {
    return NotOnnx(path, "it is over 2 GB even without its weights");
  }
  ParsedFile file;
  const bool is_parsed =
      stripped->has_left_out
          ? file.proto->ParseFromString(stripped->bytes.Flatten())
          : file.proto->ParseFromArray(source.data(), static_cast<int>(source.size()));
  if (!is_parsed) return NotOnnx(path, "its protobuf encoding is damaged");
  return file;
}

class QuietCollector final : public google::protobuf::io::ErrorCollector {
 public:
// Protobuf 22 renamed the call that it makes; without a collector it would print to stderr.
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

bool IsOnnxText(const std::string& path) { return EndsWithAny(path, {".onnxtxt", ".onnx.txt"}); }
bool IsProtoText(const std::string& path) {
  return EndsWithAny(path, {".textproto", ".pbtxt", ".prototxt", ".onnxtext"});
}

Result<ParsedFile> ParseText(std::string_view source, const std::string& path) {
  ParsedFile file;
  const std::string text(source);
  if (IsOnnxText(path)) {
    onnx::OnnxParser parser(text.c_str());
    if (const auto status = parser.Parse(*file.proto); !status.IsOK()) {
      return NotOnnx(path, status.ErrorMessage().substr(0, 300));
    }
  } else {
    QuietCollector errors;
    google::protobuf::TextFormat::Parser parser;
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

Result<ParsedFile> ParseModelFile(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  const std::string_view source = mapped.bytes();
  if (source.empty()) return NotOnnx(path, "it is empty");
  CKPLAN_ASSIGN_OR_RETURN(ParsedFile file,
                          IsTextModel(path) ? ParseText(source, path) : ParseBinary(source, path));
  if (!file.proto->has_graph() || file.proto->graph().node_size() == 0) {
    return NotOnnx(path, "it holds no graph with nodes");
  }
  if (file.proto->opset_import_size() == 0) {
    // Files of IR 1 and 2 had no such list; they mean the first operator set.
    if (file.proto->ir_version() >= 3) return NotOnnx(path, "it imports no operator set");
    file.proto->add_opset_import()->set_version(1);
  }
  file.sha256 = GraphHash(*file.proto);
  return file;
}

}  // namespace ckplan
