// Reads values from a JSON document and collects all faults with their places.
//
//   CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, "g.json"));
//   const JsonView root = document.root();
//   const int64_t bytes = root["tensors"].at(3)["bytes"].Integer();
//   CKPLAN_RETURN_IF_ERROR(document.Status());   // g.json: /tensors/3/bytes: ...
//
// A missing value or one of the wrong kind reads as 0, false or empty, so readers run to the end
// without checking each value. Status() then reports the first ten faults. Check it before you use
// the values for anything but further reading.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// A fault, with the place where it was found first.
struct JsonFault {
  std::string place;
  std::string what;
  size_t places = 1;
  const nlohmann::json* last = nullptr;  // The value with the latest occurrence.
};

// The state that a document and its views share.
struct JsonState {
  nlohmann::json root;
  std::vector<JsonFault> faults;  // The first distinct faults.
  size_t fault_count = 0;         // The number of distinct faults.
};

// A value of a document; the document must outlive it. A view searches for its place only to report
// a fault, so reading valid input does not pay for it.
class JsonView {
 public:
  JsonView(const nlohmann::json* value, JsonState* state) : value_(value), state_(state) {}

  bool has(std::string_view key) const;
  // Like has, but a null counts as missing.
  bool has_value(std::string_view key) const;
  // Reports a fault if the key is missing.
  JsonView operator[](std::string_view key) const;

  // Returns the length of an array; for any other value, reports a fault and returns 0.
  size_t size() const;
  JsonView at(size_t index) const;

  int64_t Integer(int64_t low = 0, int64_t high = std::numeric_limits<int64_t>::max()) const;
  int64_t IntegerOr(std::string_view key, int64_t absent) const;
  bool Boolean() const;
  bool BooleanOr(std::string_view key, bool absent) const;
  std::string Text() const;
  std::string TextOr(std::string_view key, std::string_view absent) const;
  // Returns the index of the text in `choices`; for any other value, reports a fault and returns 0.
  size_t Choice(const std::vector<std::string_view>& choices) const;

  // Calls visit(key, view) for each member, sorted by key.
  template <typename Visit>
  void ForEachMember(Visit visit) const {
    if (!ExpectObject()) return;
    for (auto it = value_->begin(); it != value_->end(); ++it) {
      visit(it.key(), JsonView(&it.value(), state_));
    }
  }

  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  bool is_text() const { return value_ != nullptr && value_->is_string(); }
  // Returns true for an integer from 0 to 2^63 - 1.
  bool is_file_id() const;
  bool is_array() const { return value_ != nullptr && value_->is_array(); }
  // Returns the place as a JSON pointer (RFC 6901), such as "/nodes/3/bytes"; "" for the root.
  std::string place() const;
  void Fault(std::string_view what) const;

 private:
  bool ExpectObject() const;
  void WrongKind(std::string_view expected) const;

  const nlohmann::json* value_;  // Null if missing; that fault is already reported.
  JsonState* state_;
};

class JsonDocument {
 public:
  // `where` names the text in messages. kInvalidInput: the text is not JSON, repeats a key in an
  // object, or exceeds the limits of MeasureJson.
  static Result<JsonDocument> Parse(std::string_view text, std::string where);

  JsonView root() const { return {&state_->root, state_.get()}; }
  // kInvalidInput: the faults so far.
  Result<Done> Status() const;
  const std::string& where() const { return where_; }

 private:
  JsonDocument(nlohmann::json root, std::string where);

  std::string where_;
  std::unique_ptr<JsonState> state_;
};

// The current format version. Minor versions only add fields, and readers ignore unknown fields.
inline constexpr std::string_view kSchemaVersion = "1.0";
// The format version of plans with offloading.
inline constexpr std::string_view kOffloadVersion = "1.1";
// Reports a fault unless the major number of root["schema_version"] is 1.
void CheckSchemaVersion(const JsonView& root, bool allow_missing);

}  // namespace ckplan
