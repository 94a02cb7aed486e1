#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/files/emit/pickle_writer.h"
#include "lib/files/emit/viewers.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// The addresses of the two segments: far apart and far from zero, like those of a device.
constexpr int64_t kArenaAddress = int64_t{1} << 40;
constexpr int64_t kConstantsAddress = int64_t{1} << 60;
// If there are categories, the viewer requires one with this name.
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

  // Writes the segment in its final state: one block, free in the arena.
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

  // Writes at least one block of the category that the viewer requires, even if it is empty.
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

  // A tick of the timeline is one allocation or one release.
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

  // A buffer that is passed on counts as its last contents, since these stay, while the overwritten
  // ones were passing.
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
      node = graph_.MakerOf(buffer.tensor);
      frames.push_back({CategoryOf(index), 0, "gradient of " + graph_.NameOf(buffer.tensor)});
    } else {
      const std::vector<int32_t>& versions = versions_in_[index];
      node = graph_.MakerOf(traced_.version(versions.back()).tensor);
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
  // The versions in each buffer, without aliases; empty if it holds no tensor.
  std::vector<std::vector<int32_t>> versions_in_;
  PickleWriter pickle_;
};

}  // namespace

std::string WriteMemoryViz(const TracedPlan& traced) { return Snapshot(traced).Write(); }

}  // namespace ckplan
