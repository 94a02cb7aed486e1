// Tests the formats of external viewers by parsing them according to their specifications.
#include "lib/files/emit/viewers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/transfers.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

using nlohmann::json;

// ---- Protobuf ----

struct Field {
  uint64_t number = 0;
  uint64_t value = 0;     // The value of a varint.
  std::string_view text;  // The contents of a field with a length.
};

// Splits the message into fields. Fails the test if anything else is in it.
std::vector<Field> FieldsOf(std::string_view message) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at < message.size());
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  std::vector<Field> fields;
  while (at < message.size()) {
    const uint64_t tag = varint();
    Field field{tag >> 3, varint(), {}};
    REQUIRE(((tag & 7) == 0 || (tag & 7) == 2));
    if ((tag & 7) == 2) {
      REQUIRE(field.value <= message.size() - at);
      field.text = message.substr(at, field.value);
      at += field.value;
    }
    fields.push_back(field);
  }
  return fields;
}

// Returns the first field with that number, which must exist.
Field FieldOf(std::string_view message, uint64_t number) {
  for (const Field& field : FieldsOf(message)) {
    if (field.number == number) return field;
  }
  FAIL("no field ", number);
  return {};
}

struct TrackEvent {
  uint64_t time = 0;
  uint64_t type = 0;  // 1: a slice begins; 2: it ends; 4: a counter.
  uint64_t track = 0;
  std::string_view message;
};

// ---- Pickle ----

// Interprets the opcodes for strings, integers, lists and dictionaries.
class Unpickler {
 public:
  explicit Unpickler(std::string_view bytes) : bytes_(bytes) {}

  json Load() {
    REQUIRE(Take(2) == "\x80\x02");
    for (;;) {
      const char opcode = Take(1).front();
      if (opcode == '.') break;
      Run(opcode);
    }
    REQUIRE(at_ == bytes_.size());
    REQUIRE(stack_.size() == 1);
    return stack_.front();
  }

 private:
  std::string_view Take(size_t count) {
    REQUIRE(count <= bytes_.size() - at_);
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  int64_t Number(size_t count) {
    const std::string_view bytes = Take(count);
    uint64_t value = static_cast<int8_t>(bytes.back()) < 0 ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return static_cast<int64_t>(value);
  }
  std::vector<json> ToMark() {
    REQUIRE_FALSE(marks_.empty());
    const auto mark = stack_.begin() + static_cast<int64_t>(marks_.back());
    std::vector<json> items(mark, stack_.end());
    stack_.erase(mark, stack_.end());
    marks_.pop_back();
    return items;
  }
  void Run(char opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '}':
        stack_.push_back(json::object());
        break;
      case ']':
        stack_.push_back(json::array());
        break;
      case 'J':
        stack_.emplace_back(Number(4));
        break;
      case '\x8a':
        stack_.emplace_back(Number(static_cast<size_t>(Number(1))));
        break;
      case 'X':
        stack_.emplace_back(std::string(Take(static_cast<size_t>(Number(4)))));
        break;
      case 'u': {
        const std::vector<json> items = ToMark();
        REQUIRE(items.size() % 2 == 0);
        for (size_t i = 0; i < items.size(); i += 2) {
          stack_.back()[items[i].get<std::string>()] = items[i + 1];
        }
        break;
      }
      case 'e':
        for (json& item : ToMark()) stack_.back().push_back(item);
        break;
      default:
        FAIL("unknown opcode ", static_cast<int>(opcode));
    }
  }

  std::string_view bytes_;
  size_t at_ = 0;
  std::vector<json> stack_;
  std::vector<size_t> marks_;
};

}  // namespace

TEST_CASE("perfetto: a slice for each step, and counters whose maximum is the peak") {
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const std::string trace = WritePerfetto(TracePlan(*random.graph, random.plan));
    uint64_t now = 0, open = 0, slices = 0;
    std::map<uint64_t, bool> is_counter;  // By track.
    uint64_t memory_track = 0;
    std::map<uint64_t, int64_t> value;  // By counter.
    int64_t highest = 0;
    for (const Field& packet : FieldsOf(trace)) {
      REQUIRE(packet.number == 1);
      CHECK(FieldOf(packet.text, 10).value == 1);
      const std::vector<Field> fields = FieldsOf(packet.text);
      const auto described =
          std::find_if(fields.begin(), fields.end(), [](const Field& f) { return f.number == 60; });
      if (described != fields.end()) {
        const std::vector<Field> track = FieldsOf(described->text);
        const uint64_t uuid = FieldOf(described->text, 1).value;
        is_counter[uuid] =
            std::any_of(track.begin(), track.end(), [](const Field& f) { return f.number == 8; });
        if (is_counter[uuid] && FieldOf(described->text, 2).text == "memory") memory_track = uuid;
        continue;
      }
      const uint64_t time = FieldOf(packet.text, 8).value;
      CHECK(time >= now);
      now = time;
      const std::string_view event = FieldOf(packet.text, 11).text;
      const uint64_t type = FieldOf(event, 9).value;
      const uint64_t track = FieldOf(event, 11).value;
      REQUIRE(is_counter.count(track) == 1);
      CHECK(is_counter[track] == (type == 4));
      if (type == 1) {
        CHECK(++open == 1);
        ++slices;
        CHECK_FALSE(FieldOf(event, 23).text.empty());
      }
      if (type == 2) CHECK(--open == 0);
      if (type != 4) continue;
      value[track] = static_cast<int64_t>(FieldOf(event, 30).value);
      if (track == memory_track) highest = std::max(highest, value[track]);
    }
    CHECK(open == 0);
    CHECK(slices == random.plan.schedule.steps.size());
    CHECK(highest == random.plan.figures.peak.count());
  }
}

TEST_CASE("perfetto: a plan that moves values has a slice for each copy and each wait") {
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    const RandomMoved random(seed);
    std::map<uint64_t, std::string> threads;  // By track.
    std::map<std::string, int64_t> begun;     // Slices, by thread.
    std::map<std::string, int64_t> time;      // Sums over slices of the category, or of the link.
    std::map<uint64_t, std::pair<std::string, int64_t>> open;
    const std::string trace = WritePerfetto(TracePlan(*random.step, random.plan));
    for (const Field& packet : FieldsOf(trace)) {
      const std::vector<Field> fields = FieldsOf(packet.text);
      const auto described =
          std::find_if(fields.begin(), fields.end(), [](const Field& f) { return f.number == 60; });
      if (described != fields.end()) {
        for (const Field& field : FieldsOf(described->text)) {
          if (field.number != 4) continue;
          threads[FieldOf(described->text, 1).value] = std::string(FieldOf(field.text, 5).text);
        }
        continue;
      }
      const auto now = static_cast<int64_t>(FieldOf(packet.text, 8).value);
      const std::string_view event = FieldOf(packet.text, 11).text;
      const uint64_t track = FieldOf(event, 11).value;
      if (FieldOf(event, 9).value == 1) {
        CHECK(open.count(track) == 0);
        open[track] = {std::string(FieldOf(event, 22).text), now};
        ++begun[threads.at(track)];
      } else if (FieldOf(event, 9).value == 2) {
        time[open.at(track).first] += now - open.at(track).second;
        open.erase(track);
      }
    }
    const Transfers transfers = TransfersOf(*random.step, random.plan.schedule);
    CHECK(begun["link out"] + begun["link in"] == static_cast<int64_t>(transfers.copies.size()));
    CHECK(time["wait"] == transfers.stall.count());
    CHECK(time["wait"] + time["forward"] + time["backward"] + time["recompute"] ==
          transfers.makespan.count());
  }
}

TEST_CASE("memory-viz: blocks are allocated and freed in the arena as the plan says") {
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const std::string pickle = WriteMemoryViz(TracePlan(*random.graph, random.plan));
    const json snapshot = Unpickler(pickle).Load();
    const json& segment = snapshot["segments"][0];
    const int64_t begin = segment["address"];
    const int64_t end = begin + segment["total_size"].get<int64_t>();
    std::map<int64_t, int64_t> live;  // From address to size.
    int64_t in_arena = 0, highest = 0;
    std::vector<std::string> categories;
    for (const json& event : snapshot["device_traces"][0]) {
      const std::string action = event["action"];
      const int64_t address = event["addr"], size = event["size"];
      if (event.contains("category")) categories.push_back(event["category"]);
      if (address < begin || address >= end || size == 0) continue;
      if (action == "alloc") {
        CHECK(address + size <= end);
        const auto after = live.lower_bound(address);
        if (after != live.end()) CHECK(address + size <= after->first);
        if (after != live.begin()) {
          CHECK(std::prev(after)->first + std::prev(after)->second <= address);
        }
        live[address] = size;
        in_arena += size;
        highest = std::max(highest, in_arena);
        CHECK_FALSE(event["frames"].empty());
      } else if (action == "free_completed") {
        REQUIRE(live.count(address) == 1);
        CHECK(live[address] == size);
        live.erase(address);
        in_arena -= size;
      }
    }
    CHECK(live.empty());
    CHECK(highest == random.plan.figures.peak.count());
    // The viewer fails if other categories exist but this one does not.
    CHECK(std::count(categories.begin(), categories.end(), "unknown") == 1);
  }
}

TEST_CASE("pickle: long lists, large and negative numbers") {
  PickleWriter pickle;
  pickle.BeginDict().Key("list").BeginList();
  for (int64_t i = 0; i < 2500; ++i) pickle.Integer(i);
  pickle.End().Key("numbers").BeginList();
  const std::vector<int64_t> numbers = {
      0, -1, INT32_MAX, INT32_MIN, int64_t{INT32_MAX} + 1, INT64_MAX, INT64_MIN};
  for (const int64_t number : numbers) pickle.Integer(number);
  pickle.End().Key("empty").BeginDict().End().Key("text").Text("naïve").End();
  const json found = Unpickler(std::move(pickle).Finish()).Load();
  REQUIRE(found["list"].size() == 2500);
  CHECK(found["list"][2499] == 2499);
  CHECK(found["numbers"] == json(numbers));
  CHECK(found["empty"] == json::object());
  CHECK(found["text"] == "naïve");
}

TEST_CASE("model-explorer: an action and a colour for every node") {
  Rng rng(1);
  const TensorGraph graph = RandomTensorGraph(rng);
  IdVector<NodeId, bool> is_kept;
  for (size_t i = 0; i < graph.nodes().size(); ++i) is_kept.push_back(i % 2 == 0);
  const Plan plan = AssemblePlan(graph, LowerStrategy(graph, KeptSet{is_kept}),
                                 IdVector<NodeId, int32_t>(graph.nodes().size(), 0));
  const json found = json::parse(WriteModelExplorer(graph, plan));
  REQUIRE(found["results"].size() == graph.nodes().size());
  for (const NodeId node : graph.nodes().ids()) {
    const json& result = found["results"][graph.node(node).name];
    CHECK(result["value"].get<std::string>().starts_with(NameOf(plan.decisions[node].action)));
    CHECK(result["bgColor"].get<std::string>().size() == 7);
  }
}

TEST_CASE("peak-stacks: the stacks add up to the peak") {
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    std::istringstream lines(WritePeakStacks(TracePlan(*random.graph, random.plan)));
    int64_t sum = 0;
    std::string line;
    while (std::getline(lines, line)) {
      const size_t blank = line.rfind(' ');
      REQUIRE(blank != std::string::npos);
      CHECK(line.find(' ') == blank);
      sum += std::stoll(line.substr(blank + 1));
    }
    CHECK(sum == random.plan.figures.peak.count());
  }
}

}  // namespace ckplan
