#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/text.h"
#include "lib/files/emit/viewers.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

namespace {

// Writes messages in the protobuf wire format. Only the model reader links the protobuf library.
class ProtoWriter {
 public:
  // Encodes signed values like int32 and int64, not like sint.
  ProtoWriter& Integer(uint32_t field, int64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoWriter& Text(uint32_t field, std::string_view text) {
    Varint(uint64_t{field} << 3 | kLengthDelimited);
    Varint(text.size());
    bytes_ += text;
    return *this;
  }
  ProtoWriter& Message(uint32_t field, const ProtoWriter& message) {
    return Text(field, message.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kLengthDelimited = 2;

  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Field numbers, by the messages of protos/perfetto/trace.
namespace trace {
constexpr uint32_t kPacket = 1;
}
namespace packet {
constexpr uint32_t kTimestamp = 8;  // Nanoseconds.
constexpr uint32_t kSequence = 10;
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kTrackDescriptor = 60;
constexpr int64_t kStateCleared = 1;  // A value of the flags.
}  // namespace packet
namespace track {
constexpr uint32_t kUuid = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kProcess = 3;
constexpr uint32_t kThread = 4;
constexpr uint32_t kParent = 5;
constexpr uint32_t kCounter = 8;
constexpr uint32_t kPid = 1;          // Field of a process and of a thread.
constexpr uint32_t kTid = 2;          // Field of a thread.
constexpr uint32_t kThreadName = 5;   // Field of a thread.
constexpr uint32_t kProcessName = 6;  // Field of a process.
constexpr uint32_t kUnit = 3;         // Field of a counter.
constexpr int64_t kBytes = 3;         // A value of the unit.
}  // namespace track
namespace event {
constexpr uint32_t kAnnotation = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kTrack = 11;
constexpr uint32_t kCategory = 22;
constexpr uint32_t kName = 23;
constexpr uint32_t kCounterValue = 30;
constexpr int64_t kBegin = 1;  // The types of events.
constexpr int64_t kEnd = 2;
constexpr int64_t kCounter = 4;
constexpr uint32_t kKey = 10;       // Field of an annotation.
constexpr uint32_t kIntValue = 4;   // Field of an annotation.
constexpr uint32_t kTextValue = 6;  // Field of an annotation.
}  // namespace event

constexpr int64_t kSequenceId = 1;
constexpr int64_t kPid = 1;
// Track ids; the tracks for the kinds of memory follow the last one.
constexpr int64_t kProcessTrack = 1;
constexpr int64_t kScheduleTrack = 2;
constexpr int64_t kMemoryTrack = 3;
constexpr int64_t kConstantsTrack = 4;
constexpr int64_t kFirstKindTrack = 5;
constexpr int64_t kFirstLinkTrack = kFirstKindTrack + int64_t{kMemoryKinds};  // Out, then in.

class PerfettoTrace {
 public:
  explicit PerfettoTrace(const TracedPlan& traced)
      : traced_(traced), graph_(traced.graph), kinds_(ShownKinds(traced.plan.schedule)) {
    if (HasTransfers(traced.plan.schedule)) {
      transfers_ = TransfersOf(traced.graph, traced.plan.schedule);
    }
  }

  std::string Write() && {
    DescribeTracks();
    const std::vector<StepMemory> memory = traced_.steps().empty()
                                               ? std::vector<StepMemory>()
                                               : TraceMemory(traced_.timeline, traced_.kinds);
    Count(kConstantsTrack, TotalConstants(traced_.plan.figures));
    for (size_t k = 0; k < memory.size(); ++k) WriteStep(k, memory[k]);
    if (!memory.empty()) WriteMemory(StepMemory{});
    if (transfers_) WriteLink();
    return std::move(trace_).Take();
  }

 private:
  // Builds a trace packet by packet.
  class Packets {
   public:
    void Add(ProtoWriter packet) {
      packet.Integer(packet::kSequence, kSequenceId);
      if (text_.empty()) packet.Integer(packet::kSequenceFlags, packet::kStateCleared);
      ProtoWriter whole;
      whole.Message(trace::kPacket, packet);
      text_ += whole.bytes();
    }
    std::string Take() && { return std::move(text_); }

   private:
    std::string text_;
  };

  void Describe(const ProtoWriter& track) {
    trace_.Add(ProtoWriter().Message(packet::kTrackDescriptor, track));
  }

  void DescribeTracks() {
    const Plan& plan = traced_.plan;
    const std::string name =
        fmt::format("{} by {}", Printable(plan.model.name, kLongestName), plan.request.algorithm);
    Describe(
        ProtoWriter()
            .Integer(track::kUuid, kProcessTrack)
            .Message(track::kProcess,
                     ProtoWriter().Integer(track::kPid, kPid).Text(track::kProcessName, name)));
    DescribeThread(kScheduleTrack, kPid, "schedule");
    if (transfers_) {
      DescribeThread(kFirstLinkTrack, kPid + 1, "link out");
      DescribeThread(kFirstLinkTrack + 1, kPid + 2, "link in");
    }
    DescribeCounter(kMemoryTrack, "memory");
    DescribeCounter(kConstantsTrack, "constants");
    for (size_t kind = 0; kind < kinds_; ++kind) {
      DescribeCounter(kFirstKindTrack + static_cast<int64_t>(kind),
                      fmt::format("memory: {}", NameOf(static_cast<MemoryKind>(kind))));
    }
  }

  void DescribeThread(int64_t uuid, int64_t thread, std::string_view name) {
    Describe(ProtoWriter()
                 .Integer(track::kUuid, uuid)
                 .Integer(track::kParent, kProcessTrack)
                 .Message(track::kThread, ProtoWriter()
                                              .Integer(track::kPid, kPid)
                                              .Integer(track::kTid, thread)
                                              .Text(track::kThreadName, name)));
  }

  void DescribeCounter(int64_t uuid, std::string_view name) {
    Describe(ProtoWriter()
                 .Integer(track::kUuid, uuid)
                 .Integer(track::kParent, kProcessTrack)
                 .Text(track::kName, name)
                 .Message(track::kCounter, ProtoWriter().Integer(track::kUnit, track::kBytes)));
  }

  void Add(const ProtoWriter& track_event) {
    trace_.Add(
        ProtoWriter().Integer(packet::kTimestamp, now_).Message(packet::kTrackEvent, track_event));
  }

  void Count(int64_t track, Bytes bytes) {
    Add(ProtoWriter()
            .Integer(event::kType, event::kCounter)
            .Integer(event::kTrack, track)
            .Integer(event::kCounterValue, bytes.count()));
  }

  void WriteMemory(const StepMemory& memory) {
    Count(kMemoryTrack, memory.total());
    for (size_t kind = 0; kind < kinds_; ++kind) {
      // Unchanged values need no event.
      if (now_ > 0 && memory.by_kind[kind] == last_.by_kind[kind]) continue;
      Count(kFirstKindTrack + static_cast<int64_t>(kind), memory.by_kind[kind]);
    }
    last_ = memory;
  }

  void WriteStep(size_t k, const StepMemory& memory) {
    if (transfers_) WriteWait(transfers_->steps[k]);
    WriteMemory(memory);
    const Step& step = traced_.steps()[k];
    if (step.is_transfer()) return;
    ProtoWriter begin = Begin(kScheduleTrack, CategoryOf(k), traced_.NameOfStep(k));
    begin.Message(event::kAnnotation, Argument("step", static_cast<int64_t>(k)));
    if (step.kind != StepKind::kLoss && !step.is_free()) {
      begin.Message(event::kAnnotation, Argument("operator", graph_.OpOf(step.node())));
      const std::vector<std::string> modules = graph_.ModulesOf(step.node());
      if (!modules.empty()) begin.Message(event::kAnnotation, Argument("module", modules.back()));
    }
    Add(begin);
    now_ = transfers_ ? transfers_->steps[k].end.count()
                      : now_ + std::max(graph_.CostOf(step).count(), int64_t{1});
    End(kScheduleTrack);
  }

  // Writes the wait before the step and moves the time to the step's beginning.
  void WriteWait(const StepTime& time) {
    if (time.waits > Cost(0)) {
      now_ = (time.begin - time.waits).count();
      Add(Begin(kScheduleTrack, "wait", "wait for a copy"));
      now_ = time.begin.count();
      End(kScheduleTrack);
    }
    now_ = time.begin.count();
  }

  void WriteLink() {
    for (const LinkCopy& copy : transfers_->copies) {
      const int64_t track = kFirstLinkTrack + (copy.way == CopyWay::kOut ? 0 : 1);
      now_ = copy.begin.count();
      ProtoWriter begin = Begin(track, "copy", graph_.NameOf(copy.value));
      begin.Message(event::kAnnotation, Argument("step", int64_t{copy.step}));
      begin.Message(event::kAnnotation, Argument("bytes", copy.bytes.count()));
      Add(begin);
      now_ = copy.end.count();
      End(track);
    }
  }

  static ProtoWriter Begin(int64_t track, std::string_view category, std::string_view name) {
    ProtoWriter begin;
    begin.Integer(event::kType, event::kBegin)
        .Integer(event::kTrack, track)
        .Text(event::kCategory, category)
        .Text(event::kName, Printable(name, kLongestName));
    return begin;
  }

  void End(int64_t track) {
    Add(ProtoWriter().Integer(event::kType, event::kEnd).Integer(event::kTrack, track));
  }

  std::string_view CategoryOf(size_t k) const {
    const Step& step = traced_.steps()[k];
    if (traced_.has_run[k]) return "recompute";
    if (step.kind == StepKind::kLoss) return "loss";
    if (step.is_free()) return "free";
    return graph_.IsBackward(step) ? "backward" : "forward";
  }

  static ProtoWriter Argument(std::string_view key, int64_t value) {
    return ProtoWriter().Text(event::kKey, key).Integer(event::kIntValue, value);
  }
  static ProtoWriter Argument(std::string_view key, std::string_view value) {
    return ProtoWriter()
        .Text(event::kKey, key)
        .Text(event::kTextValue, Printable(value, kLongestName));
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const size_t kinds_;
  std::optional<Transfers> transfers_;  // Absent if nothing is moved.
  Packets trace_;
  StepMemory last_;
  int64_t now_ = 0;
};

}  // namespace

std::string WritePerfetto(const TracedPlan& traced) { return PerfettoTrace(traced).Write(); }

}  // namespace ckplan
