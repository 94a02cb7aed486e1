#include "cli/common/message.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "cli/common/request_flags.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

MessageForm current_form = MessageForm::kText;

std::string_view NameOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kInvalidInput:
      return "invalid-input";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kInfeasible:
      return "infeasible";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCheckFailed:
      return "check-failed";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

// If the exit code is not the one of the error, it says more than the error's own code.
std::string_view KindOf(const Error& error, ExitCode code) {
  if (ExitCodeOf(error.code) == code) return NameOf(error.code);
  if (code == ExitCode::kDifferent) return "limit";
  return code == ExitCode::kInterrupted ? "interrupted" : "several";
}

// Returns the least budget in bytes, if the error says that the budget is too small and its remedy
// names the least one.
std::optional<int64_t> MinBytes(const Error& error) {
  if (error.code != ErrorCode::kInfeasible) return std::nullopt;
  for (const Remedy::Setting& setting : error.remedy.settings) {
    const bool is_budget =
        setting.name == "budget" || setting.name == "total_budget" || setting.name == "memory";
    if (!is_budget) continue;
    int64_t bytes = 0;
    const char* const end = setting.value.data() + setting.value.size();
    const auto [stop, fault] = std::from_chars(setting.value.data(), end, bytes);
    if (fault == std::errc() && stop == end) return bytes;
  }
  return std::nullopt;
}

void WriteRemedy(const Remedy& remedy, JsonWriter* json) {
  if (remedy.settings.empty()) {
    json->Null();
    return;
  }
  json->BeginObject(JsonLayout::kInline);
  json->Key("advice").Text(remedy.advice);
  json->Key("settings").BeginArray(JsonLayout::kInline);
  for (const Remedy::Setting& setting : remedy.settings) {
    json->BeginObject(JsonLayout::kInline);
    json->Key("field").Text(setting.name);
    json->Key("flag").Text(FlagOf(setting.name));
    json->Key("value").TextOrNull(setting.value).End();
  }
  json->End().End();
}

void BeginMessage(std::string_view level, JsonWriter* json) {
  json->BeginObject(JsonLayout::kInline);
  json->Key("schema_version").Text("1.0");
  json->Key("level").Text(level);
}

}  // namespace

MessageForm MessageFormIn(const std::vector<std::string>& arguments) {
  const std::string flag(kMessagesFlag);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool has_next = i + 1 < arguments.size();
    if (arguments[i] == flag + "=json") return MessageForm::kJson;
    if (arguments[i] == flag && has_next && arguments[i + 1] == "json") return MessageForm::kJson;
  }
  return MessageForm::kText;
}

void SetMessageForm(MessageForm form) { current_form = form; }

MessageForm CurrentMessageForm() { return current_form; }

std::string MessageJson(std::string_view level, std::string_view message) {
  JsonWriter json;
  BeginMessage(level, &json);
  json.Key("message").Text(PrintableMessage(message)).End();
  return std::move(json).Finish();
}

std::string ErrorJson(const Error& error, ExitCode code) {
  JsonWriter json;
  BeginMessage("error", &json);
  json.Key("kind").Text(KindOf(error, code));
  json.Key("exit_code").Integer(static_cast<int>(code));
  json.Key("message").Text(PrintableMessage(MessageOf(error)));
  json.Key("notes").BeginArray(JsonLayout::kInline);
  for (const std::string& note : error.notes) json.Text(PrintableMessage(note));
  json.End();
  json.Key("remedy");
  WriteRemedy(error.remedy, &json);
  json.Key("least_bytes").Integer(MinBytes(error)).End();
  return std::move(json).Finish();
}

}  // namespace ckplan
