#include "lib/files/emit/viewers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/explain/explain_peak.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

namespace {

// Writes long lists in batches, as Python's pickle does: some readers pass a whole batch as
// arguments of one call, which fails for very many.
constexpr size_t kMaxBatchItems = 1000;

constexpr char kMark = '(';
constexpr char kEmptyDict = '}';
constexpr char kEmptyList = ']';
constexpr char kSetItems = 'u';
constexpr char kAppends = 'e';
constexpr char kBinInt = 'J';    // 4 bytes.
constexpr char kLong1 = '\x8a';  // A length in one byte, then that many bytes.
constexpr char kBinUnicode = 'X';
constexpr char kStop = '.';

}  // namespace

void PickleWriter::LittleEndian(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

// Begins a new batch in a list if the current one is full. Dictionaries are not split.
void PickleWriter::BeginItem() {
  if (levels_.empty() || !levels_.back().is_list) return;
  if (levels_.back().items++ % kMaxBatchItems != 0 || levels_.back().items == 1) return;
  bytes_ += kAppends;
  bytes_ += kMark;
}

PickleWriter& PickleWriter::BeginDict() {
  BeginItem();
  bytes_ += kEmptyDict;
  bytes_ += kMark;
  levels_.push_back({false, 0});
  return *this;
}

PickleWriter& PickleWriter::BeginList() {
  BeginItem();
  bytes_ += kEmptyList;
  bytes_ += kMark;
  levels_.push_back({true, 0});
  return *this;
}

PickleWriter& PickleWriter::End() {
  bytes_ += levels_.back().is_list ? kAppends : kSetItems;
  levels_.pop_back();
  return *this;
}

PickleWriter& PickleWriter::Key(std::string_view key) {
  CKPLAN_CHECK(!levels_.empty() && !levels_.back().is_list, "a key is written into a dictionary");
  return Text(key);
}

PickleWriter& PickleWriter::Text(std::string_view text) {
  BeginItem();
  bytes_ += kBinUnicode;
  LittleEndian(text.size(), 4);
  bytes_ += text;
  return *this;
}

PickleWriter& PickleWriter::Integer(int64_t value) {
  BeginItem();
  const bool is_small = value >= INT32_MIN && value <= INT32_MAX;
  bytes_ += is_small ? kBinInt : kLong1;
  if (!is_small) bytes_ += '\x08';
  LittleEndian(static_cast<uint64_t>(value), is_small ? 4 : 8);
  return *this;
}

std::string PickleWriter::Finish() && {
  bytes_ += kStop;
  return std::move(bytes_);
}

namespace {

// Okabe and Ito's colours.
std::string_view ColourOf(NodeAction action) {
  switch (action) {
    case NodeAction::kKeep:
      return "#0072B2";
    case NodeAction::kRecompute:
      return "#E69F00";
    case NodeAction::kTransient:
      return "#BBBBBB";
    case NodeAction::kDrop:
      break;
  }
  return "#FFFFFF";
}

std::string ValueOf(const NodeDecision& decision) {
  const std::string action(NameOf(decision.action));
  if (decision.recompute_count <= 1) return action;
  return fmt::format("{} {} times", action, decision.recompute_count);
}

}  // namespace

std::string WriteModelExplorer(const TensorGraph& graph, const Plan& plan) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("name").Text(fmt::format("ckplan: {}", plan.request.algorithm));
  json.Key("showExpandedSummaryOnGroupNode").Boolean(true);
  json.Key("results").BeginObject(JsonLayout::kLines);
  std::set<std::string> written;  // The viewer shows only one of several nodes with the same name.
  for (const NodeId node : graph.nodes().ids()) {
    std::string name = WellFormedUtf8(ShownName(graph, node));
    if (!written.insert(name).second) continue;
    const NodeDecision& decision = plan.decisions[node];
    json.Key(name).BeginObject(JsonLayout::kInline);
    json.Key("value").Text(ValueOf(decision));
    json.Key("bgColor").Text(ColourOf(decision.action)).End();
  }
  json.End().End();
  return std::move(json).Finish();
}

namespace {

// Replaces the format's separators: a semicolon ends a frame, and the last blank ends the stack.
std::string FrameOf(std::string_view name) {
  std::string frame = Printable(name, kLongestName);
  std::replace(frame.begin(), frame.end(), ';', ':');
  std::replace(frame.begin(), frame.end(), ' ', '_');
  return frame;
}

std::string StackOf(const TrainingStep& graph, const LiveAtPeak& item) {
  std::string stack(NameOf(item.kind));
  const auto add = [&](std::string_view name) {
    if (!name.empty()) stack += ';' + FrameOf(name);
  };
  if (!item.node.is_none()) {
    for (const std::string& path : graph.ModulesOf(item.node)) add(path);
    add(graph.OpOf(item.node));
  }
  add(item.holds == BufferKind::kWorkspace ? graph.NameOf(item.node) : graph.NameOf(item.tensor));
  return stack;
}

}  // namespace

std::string WritePeakStacks(const TracedPlan& traced) {
  std::map<std::string, Bytes> stacks;
  for (const LiveAtPeak& item : ListLiveAtPeak(traced)) {
    stacks[StackOf(traced.graph, item)] += item.bytes;
  }
  std::string text;
  for (const auto& [stack, bytes] : stacks) text += fmt::format("{} {}\n", stack, bytes.count());
  return text;
}

namespace {

// The addresses of the two segments, far apart and far from zero like on a device.
constexpr int64_t kArenaAddress = int64_t{1} << 40;
constexpr int64_t kConstantsAddress = int64_t{1} << 60;
// The viewer requires a category with this name if blocks have categories.
constexpr std::string_view kUnknown = "unknown";

class Snapshot {
 public:
  explicit Snapshot(const TracedPlan& traced)
      : traced_(traced),
        graph_(traced.graph),
        constants_(TotalConstants(traced.plan.figures)),
        versions_in_(traced.timeline.buffers.size()) {
    for (size_t v = 0; v < traced.timeline.versions.size(); ++v) {
      const Version& version = traced.timeline.versions[v];
      if (graph_.StorageOf(version.tensor) != version.tensor) continue;
      versions_in_[static_cast<size_t>(version.buffer)].push_back(static_cast<int32_t>(v));
    }
  }

  std::string Write() && {
    pickle_.BeginDict();
    pickle_.Key("segments").BeginList();
    WriteSegment(kArenaAddress, arena_bytes(), "inactive");
    if (constants_ > Bytes(0)) WriteSegment(kConstantsAddress, constants_, "active_allocated");
    pickle_.End();
    pickle_.Key("device_traces").BeginList().BeginList();
    WriteConstants();
    WriteEvents();
    pickle_.End().End();
    pickle_.End();
    return std::move(pickle_).Finish();
  }

 private:
  struct Frame {
    std::string_view file;
    int64_t line = 0;
    std::string name;
  };

  // The viewer requires sizes above zero.
  Bytes arena_bytes() const { return std::max(traced_.plan.figures.arena, Bytes(1)); }

  // Writes a segment's final state: a single block.
  void WriteSegment(int64_t address, Bytes bytes, std::string_view state) {
    const bool is_active = state != "inactive";
    const int64_t active = is_active ? bytes.count() : 0;
    pickle_.BeginDict();
    pickle_.Key("device").Integer(0).Key("address").Integer(address);
    pickle_.Key("total_size").Integer(bytes.count()).Key("allocated_size").Integer(active);
    pickle_.Key("active_size").Integer(active).Key("requested_size").Integer(active);
    pickle_.Key("stream").Integer(0).Key("segment_type").Text("large");
    pickle_.Key("blocks").BeginList().BeginDict();
    pickle_.Key("address").Integer(address).Key("size").Integer(bytes.count());
    pickle_.Key("requested_size").Integer(bytes.count()).Key("state").Text(state);
    WriteFrames(is_active ? ConstantFrames() : std::vector<Frame>());
    pickle_.End().End();
    WriteFrames({});
    pickle_.End();
  }

  static std::vector<Frame> ConstantFrames() {
    return {{"constants", 0, "parameters, gradients, optimizer state and inputs"}};
  }

  void WriteFrames(const std::vector<Frame>& frames) {
    pickle_.Key("frames").BeginList();
    for (const Frame& frame : frames) {
      pickle_.BeginDict();
      pickle_.Key("filename").Text(frame.file).Key("line").Integer(frame.line);
      pickle_.Key("name").Text(Printable(frame.name, kLongestName)).End();
    }
    pickle_.End();
  }

  void WriteEvent(std::string_view action, int64_t address, Bytes bytes, int64_t step,
                  std::string_view category, const std::vector<Frame>& frames) {
    pickle_.BeginDict();
    pickle_.Key("action").Text(action).Key("addr").Integer(address);
    pickle_.Key("size").Integer(bytes.count()).Key("stream").Integer(0);
    pickle_.Key("time_us").Integer(step);
    if (!category.empty()) pickle_.Key("category").Text(category);
    WriteFrames(frames);
    pickle_.End();
  }

  // Writes at least one block with the category that the viewer requires, even if it is empty.
  void WriteConstants() {
    WriteEvent("segment_alloc", kArenaAddress, arena_bytes(), 0, "", {});
    if (constants_ > Bytes(0)) {
      WriteEvent("segment_alloc", kConstantsAddress, constants_, 0, "", {});
    }
    const int64_t address = constants_ > Bytes(0) ? kConstantsAddress : kArenaAddress;
    WriteEvent("alloc", address, constants_, 0, kUnknown, ConstantFrames());
    if (constants_ > Bytes(0)) return;
    WriteEvent("free_requested", address, constants_, 0, "", {});
    WriteEvent("free_completed", address, constants_, 0, "", {});
  }

  // Each tick of the timeline is one allocation or one release.
  void WriteEvents() {
    struct Event {
      size_t buffer = 0;
      bool is_release = false;
    };
    const std::vector<Buffer>& buffers = traced_.timeline.buffers;
    std::vector<Event> events(2 * buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      events[static_cast<size_t>(buffers[i].begin)] = {i, false};
      events[static_cast<size_t>(buffers[i].end)] = {i, true};
    }
    for (const Event& event : events) {
      const Buffer& buffer = buffers[event.buffer];
      if (buffer.bytes == Bytes(0)) continue;
      const int64_t address = kArenaAddress + traced_.plan.offsets[event.buffer].count();
      if (!event.is_release) {
        WriteEvent("alloc", address, buffer.bytes, buffer.first_step, CategoryOf(event.buffer),
                   FramesOf(event.buffer));
        continue;
      }
      for (const std::string_view action : {"free_requested", "free_completed"}) {
        WriteEvent(action, address, buffer.bytes, buffer.last_step, "", {});
      }
    }
  }

  // A buffer that is reused in place counts as its last contents, which stay the longest.
  std::string_view CategoryOf(size_t index) const {
    const BufferKind kind = traced_.timeline.buffers[index].kind;
    if (kind == BufferKind::kGradient) return NameOf(MemoryKind::kGradients);
    if (kind == BufferKind::kWorkspace) return NameOf(MemoryKind::kWorkspace);
    return NameOf(traced_.kinds[static_cast<size_t>(versions_in_[index].back())]);
  }

  std::vector<Frame> FramesOf(size_t index) const {
    const Buffer& buffer = traced_.timeline.buffers[index];
    std::vector<Frame> frames;
    NodeId node = buffer.node;
    if (buffer.kind == BufferKind::kWorkspace) {
      frames.push_back({CategoryOf(index), 0, "workspace of " + graph_.NameOf(node)});
    } else if (buffer.kind == BufferKind::kGradient) {
      node = graph_.ProducerOf(buffer.tensor);
      frames.push_back({CategoryOf(index), 0, "gradient of " + graph_.NameOf(buffer.tensor)});
    } else {
      const std::vector<int32_t>& versions = versions_in_[index];
      node = graph_.ProducerOf(traced_.version(versions.back()).tensor);
      for (auto v = versions.rbegin(); v != versions.rend(); ++v) {
        const bool is_last = v == versions.rbegin();
        frames.push_back({is_last ? CategoryOf(index) : "in place of", 0,
                          graph_.NameOf(traced_.version(*v).tensor)});
      }
    }
    const auto step = static_cast<size_t>(buffer.first_step);
    frames.push_back({"step", buffer.first_step, traced_.NameOfStep(step)});
    if (node.is_none()) return frames;
    const std::vector<std::string> modules = graph_.ModulesOf(node);
    for (auto path = modules.rbegin(); path != modules.rend(); ++path) {
      frames.push_back({"module", 0, *path});
    }
    return frames;
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const Bytes constants_;
  // The versions in each buffer, without aliases; empty for gradients and workspaces.
  std::vector<std::vector<int32_t>> versions_in_;
  PickleWriter pickle_;
};

}  // namespace

std::string WriteMemoryViz(const TracedPlan& traced) { return Snapshot(traced).Write(); }

}  // namespace ckplan
