#include "lib/files/emit/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/json_extent.h"
#include "lib/base/stop.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

using nlohmann::json;

constexpr size_t kMaxReported = 10;

constexpr auto kMaxInteger = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

// Finds the first syntax error or repeated key in a text that is not valid JSON.
class ErrorFinder : public nlohmann::json_sax<json> {
 public:
  size_t position = 0;
  std::optional<std::string> repeated_key;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    repeated_key = key;
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string&, const json::exception&) override {
    position = at;
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // The keys of the open objects.
};

// Shortens a text from a file for an error message.
std::string Shorten(std::string_view text) {
  constexpr size_t kLongest = 60;
  return Printable(text, kLongest);
}

Error InvalidJsonError(std::string_view text, const std::string& where) {
  ErrorFinder finder;
  json::sax_parse(text.begin(), text.end(), &finder);
  if (finder.repeated_key) {  // The parser would silently drop one of the two values.
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("{}: an object has the key \"{}\" twice; remove one of them",
                                 where, Shorten(*finder.repeated_key)));
  }
  const size_t end = std::min(finder.position == 0 ? 0 : finder.position - 1, text.size());
  const std::string_view before = text.substr(0, end);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view what =
      end == text.size() ? "the text ends unexpectedly" : "not valid JSON";
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("{}: line {}, column {}: {}; write the file again", where, line,
                               end - line_start + 1, what));
}

// Iterates over a text during parsing and polls for a stop every kStride characters.
struct PolledText {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  static constexpr uintptr_t kStride = 4096;

  const char* at = nullptr;

  reference operator*() const { return *at; }
  PolledText& operator++() {
    if (reinterpret_cast<uintptr_t>(++at) % kStride == 0) PollStop();
    return *this;
  }
  PolledText operator++(int) {
    PolledText before = *this;
    ++*this;
    return before;
  }
  bool operator==(const PolledText&) const = default;
};

std::string_view KindOf(const json& value) {
  if (value.is_number_float()) return "a number that is not a 64-bit integer";
  if (value.is_number()) return "an integer";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return "null";
}

void AppendKey(std::string_view key, std::string* place) {
  *place += '/';
  for (const char c : Shorten(key)) {
    if (c == '~') {
      *place += "~0";
    } else if (c == '/') {
      *place += "~1";
    } else {
      *place += c;
    }
  }
}

// Appends the path from `from` to `value` and returns true if it finds `value`. The recursion is at
// most kMaxJsonLevels deep.
bool FindPlace(const json& from, const json* value, std::string* place) {
  if (&from == value) return true;
  const size_t length = place->size();
  for (auto it = from.begin(); from.is_structured() && it != from.end(); ++it) {
    AppendKey(from.is_object() ? it.key() : std::to_string(it - from.begin()), place);
    if (FindPlace(*it, value, place)) return true;
    place->resize(length);
  }
  return false;
}

}  // namespace

bool JsonView::has(std::string_view key) const {
  return value_ != nullptr && value_->is_object() && value_->find(key) != value_->end();
}

bool JsonView::has_value(std::string_view key) const {
  return has(key) && !value_->find(key)->is_null();
}

JsonView JsonView::operator[](std::string_view key) const {
  if (!ExpectObject()) return {nullptr, state_};
  const auto member = value_->find(key);
  if (member != value_->end()) return {&*member, state_};
  Fault(fmt::format("the key \"{}\" is missing", key));
  return {nullptr, state_};
}

size_t JsonView::size() const {
  if (value_ == nullptr) return 0;
  if (value_->is_array()) return value_->size();
  WrongKind("an array");
  return 0;
}

JsonView JsonView::at(size_t index) const {
  const bool exists = value_ != nullptr && value_->is_array() && index < value_->size();
  if (!exists && value_ != nullptr) Fault(fmt::format("member {} is missing", index));
  return {exists ? &(*value_)[index] : nullptr, state_};
}

bool JsonView::is_file_id() const {
  return value_ != nullptr && value_->is_number_unsigned() &&
         value_->get<uint64_t>() <= kMaxInteger;
}

int64_t JsonView::Integer(int64_t low, int64_t high) const {
  if (value_ == nullptr) return 0;
  if (!value_->is_number_integer()) {
    WrongKind("an integer");
    return 0;
  }
  const bool is_huge = value_->is_number_unsigned() && value_->get<uint64_t>() > kMaxInteger;
  const int64_t number = is_huge ? 0 : value_->get<int64_t>();
  if (is_huge || number < low || number > high) {
    Fault(fmt::format("{} is out of range; it must be from {} to {}", value_->dump(), low, high));
    return 0;
  }
  return number;
}

int64_t JsonView::IntegerOr(std::string_view key, int64_t absent) const {
  return has(key) ? (*this)[key].Integer() : absent;
}

bool JsonView::Boolean() const {
  if (value_ == nullptr) return false;
  if (value_->is_boolean()) return value_->get<bool>();
  WrongKind("true or false");
  return false;
}

bool JsonView::BooleanOr(std::string_view key, bool absent) const {
  return has(key) ? (*this)[key].Boolean() : absent;
}

std::string JsonView::Text() const {
  if (value_ == nullptr) return {};
  if (value_->is_string()) return value_->get<std::string>();
  WrongKind("a string");
  return {};
}

std::string JsonView::TextOr(std::string_view key, std::string_view absent) const {
  return has(key) ? (*this)[key].Text() : std::string(absent);
}

size_t JsonView::Choice(const std::vector<std::string_view>& choices) const {
  if (value_ == nullptr) return 0;
  if (!value_->is_string()) {
    WrongKind("a string");
    return 0;
  }
  const auto& text = value_->get_ref<const std::string&>();
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  Fault(fmt::format("\"{}\" is unknown; it must be one of: {}", Shorten(text),
                    fmt::join(choices, ", ")));
  return 0;
}

std::string JsonView::place() const {
  std::string place;
  if (value_ != nullptr) FindPlace(state_->root, value_, &place);
  return place;
}

void JsonView::Fault(std::string_view what) const {
  for (JsonFault& fault : state_->faults) {
    if (fault.what != what) continue;
    if (std::exchange(fault.last, value_) != value_) ++fault.places;
    return;
  }
  if (++state_->fault_count > kMaxReported) return;
  const std::string at = place();
  state_->faults.push_back({at.empty() ? "/" : at, std::string(what), 1, value_});
}

bool JsonView::ExpectObject() const {
  if (value_ == nullptr) return false;
  if (value_->is_object()) return true;
  WrongKind("an object");
  return false;
}

void JsonView::WrongKind(std::string_view expected) const {
  Fault(fmt::format("is {}, must be {}", KindOf(*value_), expected));
}

JsonDocument::JsonDocument(json root, std::string where)
    : where_(std::move(where)), state_(std::make_unique<JsonState>()) {
  state_->root = std::move(root);
}

Result<JsonDocument> JsonDocument::Parse(std::string_view text, std::string where) {
  CKPLAN_ASSIGN_OR_RETURN(const size_t members, MeasureJson(text, where));
  json parsed = json::parse(PolledText{text.data()}, PolledText{text.data() + text.size()}, nullptr,
                            /*allow_exceptions=*/false);
  if (parsed.is_discarded() || CountMembers(parsed) != members)
    return InvalidJsonError(text, where);
  return JsonDocument(std::move(parsed), std::move(where));
}

Result<Done> JsonDocument::Status() const {
  if (state_->fault_count == 0) return Done{};
  Error error = MakeError(ErrorCode::kInvalidInput, where_ + ": ");
  for (const JsonFault& fault : state_->faults) {
    std::string text = fmt::format("{}: {}", fault.place, fault.what);
    if (fault.places > 1) text += fmt::format(", here and in {} more places", fault.places - 1);
    if (&fault == &state_->faults.front()) {
      error.message += text;
    } else {
      error.notes.push_back(std::move(text));
    }
  }
  if (state_->fault_count > state_->faults.size()) {
    error.notes.push_back(
        fmt::format("and {} more faults", state_->fault_count - state_->faults.size()));
  }
  return error;
}

void CheckSchemaVersion(const JsonView& root, bool allow_missing) {
  if (allow_missing && !root.has("schema_version")) return;
  const JsonView version = root["schema_version"];
  const std::string text = version.Text();
  if (!version.is_text() || text.substr(0, text.find('.')) == "1") return;
  version.Fault(fmt::format("unknown version \"{}\"; this ckplan reads 1.x, so try a newer one",
                            Shorten(text)));
}

}  // namespace ckplan
