// Reads values out of a JSON document and remembers every fault, each with its place.
//
//   CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, "g.json"));
//   const JsonView root = document.root();
//   const int64_t bytes = root["tensors"].at(3)["bytes"].Integer();
//   CKPLAN_RETURN_IF_ERROR(document.Status());   // g.json: /tensors/3/bytes: ...
//
// A reader always runs to its end: a value that is absent or of the wrong kind reads as 0, false or
// empty, and Status() reports it. So one run shows all faults (the first ten), and readers need no
// branch for each of them. Values must not be used before Status() is checked, except to read on.
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

// A fault, and the place where it was found first.
struct JsonFault {
  std::string place;
  std::string what;
  size_t places = 1;
  const nlohmann::json* last = nullptr;  // The value where it was found last.
};

// The state that a document and its views share.
struct JsonState {
  nlohmann::json root;
  std::vector<JsonFault> faults;  // The first faults that differ.
  size_t fault_count = 0;         // The number of different faults.
};

// A value of a document, which must outlive it. It consists of two pointers; its place is searched
// for only when a fault is reported, so reading valid input does not pay for it.
class JsonView {
 public:
  JsonView(const nlohmann::json* value, JsonState* state) : value_(value), state_(state) {}

  // Returns true for an object that has the key.
  bool has(std::string_view key) const;
  // Returns true for an object that has the key with a value other than null.
  bool has_value(std::string_view key) const;
  // Returns the member with that key; a missing one is a fault.
  JsonView operator[](std::string_view key) const;

  size_t size() const;  // The length of an array; any other value is a fault, and 0.
  JsonView at(size_t index) const;

  int64_t Integer(int64_t low = 0, int64_t high = std::numeric_limits<int64_t>::max()) const;
  int64_t IntegerOr(std::string_view key, int64_t absent) const;
  bool Boolean() const;
  bool BooleanOr(std::string_view key, bool absent) const;
  std::string Text() const;
  std::string TextOr(std::string_view key, std::string_view absent) const;
  // Returns the index of the text in `choices`; another value is a fault, and 0.
  size_t Choice(const std::vector<std::string_view>& choices) const;

  // Calls visit(key, view) for each member in the order of the keys.
  template <typename Visit>
  void ForEachMember(Visit visit) const {
    if (!ExpectObject()) return;
    for (auto it = value_->begin(); it != value_->end(); ++it) {
      visit(it.key(), JsonView(&it.value(), state_));
    }
  }

  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  bool is_text() const { return value_ != nullptr && value_->is_string(); }
  // Returns whether it is an integer from 0 to 2^63 - 1.
  bool is_file_id() const;
  bool is_array() const { return value_ != nullptr && value_->is_array(); }
  // Returns the place as in RFC 6901, "/nodes/3/bytes"; "" for the document itself.
  std::string place() const;
  void Fault(std::string_view what) const;

 private:
  bool ExpectObject() const;
  void WrongKind(std::string_view wanted) const;

  const nlohmann::json* value_;  // Null if absent, which is already reported as a fault.
  JsonState* state_;
};

class JsonDocument {
 public:
  // `where` names the text in messages. kInvalidInput: the text is not JSON, has an object with a
  // repeated key, or is too large for MeasureJson.
  static Result<JsonDocument> Parse(std::string_view text, std::string where);

  JsonView root() const { return {&state_->root, state_.get()}; }
  // kInvalidInput with all faults so far, if there are any.
  Result<Done> Status() const;
  const std::string& where() const { return where_; }

 private:
  JsonDocument(nlohmann::json root, std::string where);

  std::string where_;
  std::unique_ptr<JsonState> state_;
};

// Checks that the major number of root["schema_version"] is 1; an absent version passes if
// `may_lack`. Minor versions only add fields, and readers ignore unknown ones.
inline constexpr std::string_view kSchemaVersion = "1.0";
// The version of plans that may move values to the host.
inline constexpr std::string_view kOffloadVersion = "1.1";
void CheckSchemaVersion(const JsonView& root, bool may_lack);

}  // namespace ckplan
