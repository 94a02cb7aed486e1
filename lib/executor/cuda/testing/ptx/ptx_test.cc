// Plays small kernels, written by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "lib/executor/cuda/testing/ptx/decoder.h"
#include "lib/executor/cuda/testing/ptx/interpreter.h"
#include "lib/executor/cuda/testing/ptx/module_text.h"

namespace ckplan::ptx {
namespace {

// A kernel without the directives that all modules share. %r0 is the thread, %rd0 the address of
// `y`.
std::string KernelOf(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry Kernel(\n .param .u64 y, .param .u32 n\n)\n.maxntid 256, 1, 1\n{\n"
         "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [y]; cvta.to.global.u64 %rd0, %rd0;\n"
         "mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1;  // The thread's own element.\n" +
         body + "\nret;\n}\n";
}

struct Emulated {
  std::vector<uint32_t> y;
  std::vector<std::string> findings;
  LaunchCounts counts;
};

// Runs one block, or several, with memory for `size` elements.
Emulated PlayText(const std::string& text, int64_t threads, int64_t blocks = 1, size_t size = 64) {
  const auto module = ModuleText::Read(text);
  REQUIRE(module.ok());
  const auto program = DecodeKernel(*module, "Kernel", {});
  REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : program.error().message));
  Emulated emulated;
  emulated.y.assign(size, 7);
  std::vector<unsigned char> parameters(static_cast<size_t>(program->parameter_bytes));
  const auto address = reinterpret_cast<uint64_t>(emulated.y.data());
  std::memcpy(parameters.data(), &address, sizeof(address));
  const uint32_t n = 5;
  std::memcpy(parameters.data() + program->parameters[1].offset, &n, sizeof(n));
  GlobalMemory global([&](uint64_t) { return AddressRange{address, address + 4 * size}; });
  Findings findings;
  emulated.counts = Play(*program, parameters, {blocks, threads}, global, findings, true);
  for (const auto& [what, count] : findings.counts()) emulated.findings.push_back(what);
  return emulated;
}

Emulated PlayBody(const std::string& body, int64_t threads = 32) {
  return PlayText(KernelOf(body), threads);
}

// Returns the first element after a kernel of one thread, which stores %r1.
uint32_t ResultOf(const std::string& body) {
  const Emulated emulated = PlayBody(body + " st.global.u32 [%rd0], %r1;", 1);
  CHECK(emulated.findings.empty());
  return emulated.y[0];
}

uint32_t BitsOfFloat(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void CheckFound(const Emulated& emulated, const std::string& what) {
  REQUIRE(emulated.findings.size() == 1);
  CHECK(emulated.findings[0].substr(0, what.size()) == what);
}

// ---- Reading ------------------------------------------------------------------------------------

TEST_CASE("ptx: a module is read into globals, functions, limits and statements") {
  const auto module = ModuleText::Read(
      ".version 9.0\n.target sm_80\n"
      ".global .align 4 .b8 table[4] = {1, 2, 3, 255};\n"
      ".func  (.param .b32 result) Twice(.param .b32 x)\n;\n"
      ".func  (.param .b32 result) Twice(.param .b32 x)\n{ ret; }\n"
      ".entry Main(.param .align 8 .b8 a[24], .param .u64 b)\n.maxntid 64, 1, 1\n"
      "{ // a comment; with a semicolon\n $L0:\n @!%p1 bra $L0;\n { ld.global.v2.u32 {%r1, %r2}, "
      "[%rd1+8]; }\n}\n");
  REQUIRE(module.ok());
  REQUIRE(module->globals().size() == 1);
  CHECK(module->globals()[0].name == "table");
  CHECK(module->globals()[0].contents == std::vector<uint8_t>{1, 2, 3, 255});
  REQUIRE(module->functions().size() == 2);
  CHECK(module->functions()[0].name == "Twice");
  CHECK(!module->functions()[0].is_kernel);
  CHECK(module->functions()[0].results.size() == 1);
  const FunctionText& main = module->functions()[1];
  CHECK(main.is_kernel);
  CHECK(main.max_threads == 64);
  REQUIRE(main.parameters.size() == 2);
  CHECK(main.parameters[0].elements == 24);
  CHECK(main.parameters[0].alignment == 8);
  const auto body = ReadBody(main.body);
  REQUIRE(body.size() == 3);
  CHECK(body[0].words[0] == "$L0:");
  CHECK(body[1].guard == "%p1");
  CHECK(body[1].guard_is_negated);
  CHECK(body[2].words == std::vector<std::string_view>{"ld", "global", "v2", "u32"});
  CHECK(body[2].operands == std::vector<std::string_view>{"{%r1, %r2}", "[%rd1+8]"});
}

TEST_CASE("ptx: an instruction that is not known is refused with its text") {
  for (const std::string body :
       {"vote.sync.any.pred %p1, %p2, -1;", "add.f16 %r1, %r2, %r3;", "bar.sync 1;", "bra $L9;",
        "mul.hi.u64 %rd2, %rd3, %rd4;", "bar.warp.sync 15;", "setp.s32 %p1, %r1, %r2;"}) {
    CAPTURE(body);
    const std::string text = KernelOf(body);
    const auto module = ModuleText::Read(text);
    REQUIRE(module.ok());
    const auto program = DecodeKernel(*module, "Kernel", {});
    REQUIRE(!program.ok());
    CHECK(program.error().code == ErrorCode::kUnsupported);
  }
  const auto module = ModuleText::Read(KernelOf("vote.sync.any.pred %p1, %p2, -1;"));
  CHECK(DecodeKernel(*module, "Kernel", {}).error().message ==
        "the interpreter does not know this instruction: vote.sync.any.pred %p1, %p2, -1");
  CHECK(!DecodeKernel(*module, "Other", {}).ok());
}

// ---- Objects ------------------------------------------------------------------------------------

template <typename T>
void SetNumber(std::string& in, size_t at, T value) {
  std::memcpy(in.data() + at, &value, sizeof(value));
}

// A container with one entry, as nvcc makes them. Its content is padded to a multiple of eight.
std::string ContainerOf(uint16_t kind, const std::string& content, uint64_t flags,
                        uint64_t plain_size) {
  std::string padded = content;
  padded.resize((content.size() + 7) / 8 * 8);
  std::string entry(64, '\0');
  SetNumber<uint16_t>(entry, 0, kind);
  SetNumber<uint32_t>(entry, 4, 64);
  SetNumber<uint64_t>(entry, 8, padded.size());
  SetNumber(entry, 16, static_cast<uint32_t>(content.size()));
  SetNumber(entry, 40, flags);
  SetNumber(entry, 56, plain_size);
  std::string container(16, '\0');
  SetNumber<uint16_t>(container, 6, 16);
  SetNumber<uint64_t>(container, 8, entry.size() + padded.size());
  return container + entry + padded;
}

Result<std::string> TextIn(const std::string& container) {
  return PtxIn(reinterpret_cast<const unsigned char*>(container.data()));
}

TEST_CASE("ptx: the text of an object is found, plain or compressed") {
  const std::string text = ".version 9.0 // of an object";
  CHECK(*TextIn(ContainerOf(1, text, 0, 0)) == text);
  // A frame of Zstandard with one block that is stored as it is: the magic number, one byte for the
  // size, and the block's header, whose lowest bit says that it is the last one.
  const auto size = static_cast<char>(text.size());
  const std::string header = {'\x28', '\xB5', '\x2F', '\xFD', '\x20', size};
  const auto block = static_cast<char>(text.size() << 3 | 1U);
  const std::string frame = header + block + std::string(2, '\0') + text;
  CHECK(*TextIn(ContainerOf(1, frame, 0x8011, text.size())) == text);

  CHECK(TextIn(ContainerOf(1, frame, 0x8011, text.size() + 1)).error().code ==
        ErrorCode::kInvalidInput);
  CHECK(TextIn(ContainerOf(1, frame, 0x2011, text.size())).error().message.find("--no-compress") !=
        std::string::npos);
  CHECK(TextIn(ContainerOf(2, text, 0, 0)).error().message.find("no PTX") != std::string::npos);
}

// ---- Computing ----------------------------------------------------------------------------------

TEST_CASE("ptx: integers") {
  CHECK(ResultOf("mov.u32 %r2, 5; sub.s32 %r1, 3, %r2;") == 0xFFFFFFFEU);
  CHECK(ResultOf("mul.lo.s32 %r1, -3, 7;") == static_cast<uint32_t>(-21));
  CHECK(ResultOf("mul.hi.u32 %r1, 0xFFFFFFFF, 3;") == 2);
  CHECK(ResultOf("mad.lo.s32 %r1, 3, 4, -5;") == 7);
  CHECK(ResultOf("div.s32 %r1, -7, 2;") == static_cast<uint32_t>(-3));
  CHECK(ResultOf("rem.u32 %r1, 17, 5;") == 2);
  CHECK(ResultOf("shr.s32 %r1, -8, 1;") == static_cast<uint32_t>(-4));
  CHECK(ResultOf("shr.u32 %r1, 8, 40;") == 0);
  CHECK(ResultOf("shl.b32 %r1, 3, 4;") == 48);
  CHECK(ResultOf("min.s32 %r1, -1, 1;") == 0xFFFFFFFFU);
  CHECK(ResultOf("max.u32 %r1, -1, 1;") == 0xFFFFFFFFU);
  CHECK(ResultOf("not.b32 %r1, 0;") == 0xFFFFFFFFU);
  CHECK(ResultOf("abs.s32 %r1, -4;") == 4);
  CHECK(ResultOf("mov.b64 %rd2, 1; clz.b64 %r1, %rd2;") == 63);
  CHECK(ResultOf("prmt.b32 %r1, 0x33221100, 0x77665544, 0x5410;") == 0x55441100U);
  CHECK(ResultOf("mov.b64 %rd2, 0xFF; mov.b64 %rd3, 5; bfi.b64 %rd4, %rd3, %rd2, 4, 8; "
                 "cvt.u32.u64 %r1, %rd4;") == 0x05FU);
  CHECK(ResultOf("mov.b64 %rd2, {7, 9}; mov.b64 {%r2, %r1}, %rd2;") == 9);
  CHECK(ResultOf("add.cc.u32 %r2, -1, 1; addc.u32 %r1, 5, 0;") == 6);
  CHECK(ResultOf("sub.cc.u32 %r2, 0, 1; subc.u32 %r1, 5, 0;") == 4);
  CHECK(ResultOf("mad.lo.cc.u32 %r2, -1, 1, 1; madc.hi.u32 %r1, -1, 2, 0;") == 2);
  CHECK(ResultOf("cvt.s32.s8 %r1, 0xFF;") == 0xFFFFFFFFU);
  CHECK(ResultOf("setp.lt.s32 %p1, -1, 1; selp.b32 %r1, 3, 4, %p1;") == 3);
  CHECK(ResultOf("setp.lt.u32 %p1, -1, 1; selp.b32 %r1, 3, 4, %p1;") == 4);
  CHECK(ResultOf("setp.eq.s32 %p1, 1, 1; not.pred %p2, %p1; selp.b32 %r1, 3, 4, %p2;") == 4);
}

TEST_CASE("ptx: floats, their rounding and the one NaN of a GPU") {
  const uint32_t nan = 0x7FFFFFFF;
  CHECK(ResultOf("fma.rn.f32 %r1, 0f3F800001, 0f3F800001, 0fBF800002;") ==
        BitsOfFloat(0x1p-46F));  // The product is not rounded.
  CHECK(ResultOf("add.f32 %r1, 0f3F800000, 0f33000000;") == 0x3F800000U);
  CHECK(ResultOf("add.rz.f32 %r1, 0fBF800000, 0f33000000;") == 0xBF7FFFFFU);
  CHECK(ResultOf("sub.f32 %r1, 0f7F800000, 0f7F800000;") == nan);
  CHECK(ResultOf("max.f32 %r1, 0f7FC00001, 0f3F800000;") == 0x3F800000U);
  CHECK(ResultOf("min.f32 %r1, 0f00000000, 0f80000000;") == 0x80000000U);
  CHECK(ResultOf("rcp.approx.ftz.f32 %r1, 0f00000001;") == 0x7F800000U);
  CHECK(ResultOf("cvt.rmi.f32.f32 %r1, 0fBF000000;") == BitsOfFloat(-1));
  CHECK(ResultOf("cvt.rzi.s32.f32 %r1, 0f4F800000;") == 0x7FFFFFFFU);
  CHECK(ResultOf("cvt.rzi.s32.f32 %r1, 0f7FC00000;") == 0);
  CHECK(ResultOf("cvt.sat.f32.f32 %r1, 0f7FC00000;") == 0);
  CHECK(ResultOf("cvt.rn.f32.u32 %r1, -1;") == BitsOfFloat(0x1p32F));
  CHECK(
      ResultOf("mul.f64 %rd2, 0d4000000000000000, 0d3FE0000000000000; cvt.rn.f32.f64 %r1, %rd2;") ==
      BitsOfFloat(1));
  CHECK(ResultOf("copysign.f32 %r1, 0fBF800000, 0f40000000;") == BitsOfFloat(-2));
  CHECK(ResultOf("setp.ltu.f32 %p1, 0f7FC00000, 0f3F800000; selp.b32 %r1, 3, 4, %p1;") == 3);
  CHECK(ResultOf("setp.ne.f32 %p1, 0f7FC00000, 0f3F800000; selp.b32 %r1, 3, 4, %p1;") == 4);
  CHECK(ResultOf("setp.neu.f32 %p1, 0f7FC00000, 0f3F800000; selp.b32 %r1, 3, 4, %p1;") == 3);
}

TEST_CASE("ptx: a product or sum that an assembler may join with another is found") {
  CHECK(FindContractible("\tmul.rn.f32 %f1, %f2, %f3;\n\tadd.rn.f64 %d1, %d2, %d3;").empty());
  CHECK(FindContractible("\tmul.lo.s32 %r1, %r2, %r3;\n\tfma.rn.f32 %f1, %f2, %f3, %f4;").empty());
  CHECK(FindContractible("\tmul.rn.f32 %f1, %f2, %f3;\n\tadd.f32 %f1, %f2, %f3;") == "add.f32");
  CHECK(FindContractible("\tsub.f64 %d1, %d2, %d3;") == "sub.f64");
}

TEST_CASE("ptx: a function is called with its own parameters and registers") {
  const std::string function =
      ".func (.param .b32 result) Twice(.param .b32 x)\n{\n"
      "ld.param.b32 %r1, [x+0]; add.s32 %r1, %r1, %r1; st.param.b32 [result+0], %r1; ret;\n}\n";
  const std::string call =
      "mov.u32 %r1, 100; setp.gt.u32 %p1, %r0, 1; @%p1 bra $L1;\n"
      "{ .param .b32 p0; st.param.b32 [p0+0], %r0; .param .b32 r0;\n"
      "call.uni (r0), Twice, (p0); ld.param.b32 %r2, [r0+0]; }\n"
      "add.s32 %r1, %r1, %r2;\n$L1:\nst.global.u32 [%rd1], %r1;";
  const std::string text = KernelOf(call);
  const size_t at = text.find(".visible");
  const Emulated emulated = PlayText(text.substr(0, at) + function + text.substr(at), 4);
  CHECK(emulated.findings.empty());
  CHECK(std::vector<uint32_t>(emulated.y.begin(), emulated.y.begin() + 5) ==
        std::vector<uint32_t>{100, 102, 100, 100, 7});
}

TEST_CASE("ptx: threads part at branches and meet again, in all blocks") {
  const std::string text = KernelOf(
      "ld.param.u32 %r5, [n]; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
      "$Loop:\nsetp.ge.u32 %p1, %r2, %r0; @%p1 bra $Done;\n"
      "add.s32 %r1, %r1, %r5; add.s32 %r2, %r2, 1; bra.uni $Loop;\n"
      "$Done:\nmov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r6, %r3, %r4, %r0;\n"
      "mul.wide.u32 %rd2, %r6, 4; add.s64 %rd2, %rd0, %rd2; st.global.u32 [%rd2], %r1;");
  const Emulated emulated = PlayText(text, 20, 3);
  CHECK(emulated.findings.empty());
  for (size_t i = 0; i < 60; ++i) CHECK(emulated.y[i] == 5 * (i % 20));
  CHECK(emulated.y[60] == 7);
  CHECK(emulated.counts.instructions > 3 * 20 * 10);
}

// ---- Counting ----------------------------------------------------------------------------------

void CheckTraffic(const Traffic& traffic, int64_t bytes, int64_t sectors, int64_t distinct) {
  CHECK(traffic.bytes == bytes);
  CHECK(traffic.sectors == sectors);
  CHECK(traffic.distinct_sectors == distinct);
}

// The sectors of 32 bytes that hold elements of y, whose own alignment is not known.
int64_t SectorsOf(const Emulated& emulated, size_t begin, size_t end) {
  const auto first = reinterpret_cast<uint64_t>(&emulated.y[begin]) / kSectorBytes;
  const auto last = reinterpret_cast<uint64_t>(&emulated.y[end - 1]) / kSectorBytes;
  return static_cast<int64_t>(last - first + 1);
}

TEST_CASE("ptx: bytes and sectors are counted for each instruction of a warp, and once each") {
  // Two warps read and write their own words, and all threads read the first one.
  const Emulated neighbours = PlayBody(
      "ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd0]; st.global.u32 [%rd1], %r1;", 64);
  const int64_t own = SectorsOf(neighbours, 0, 32) + SectorsOf(neighbours, 32, 64);
  const int64_t all = SectorsOf(neighbours, 0, 64);
  CheckTraffic(neighbours.counts.reads, 2 * 256, own + 2, all);
  CheckTraffic(neighbours.counts.writes, 256, own, all);

  // Eight threads write words that are a sector apart; the guard leaves out the others.
  const Emulated strided = PlayBody(
      "setp.lt.u32 %p1, %r0, 8; mul.wide.u32 %rd2, %r0, 32; add.s64 %rd2, %rd0, %rd2;\n"
      "@%p1 st.global.u32 [%rd2], %r0;");
  CheckTraffic(strided.counts.reads, 0, 0, 0);
  CheckTraffic(strided.counts.writes, 32, 8, 8);

  // Shared memory is not counted, and a vector counts all its bytes.
  const Emulated shared = PlayBody(
      ".shared .align 8 .b8 s[8]; mov.u32 %r1, s; st.shared.u32 [%r1], 1;\n"
      "and.b64 %rd2, %rd0, -8; add.s64 %rd2, %rd2, 8; ld.global.v2.u32 {%r2, %r3}, [%rd2];",
      1);
  CheckTraffic(shared.counts.reads, 8, 1, 1);
  CheckTraffic(shared.counts.writes, 0, 0, 0);
}

TEST_CASE("ptx: instructions are counted for each thread and for each warp") {
  const Emulated emulated =
      PlayBody("setp.lt.u32 %p1, %r0, 3; @%p1 st.global.u32 [%rd1], %r0;", 40);
  // Five instructions come before, and the end after these. One is guarded.
  CHECK(emulated.counts.instructions == 40 * 7 + 3);
  CHECK(emulated.counts.warp_instructions == 2 * 8);
}

TEST_CASE("ptx: a launch is a line of JSON") {
  LaunchCounts counts;
  counts.instructions = 300;
  counts.warp_instructions = 12;
  counts.reads = {64, 3, 2};
  counts.writes = {128, 4, 4};
  CHECK(LaunchLine("f<\"x\">(int)", {2, 256}, counts) ==
        "{\"kernel\": \"f<\\\"x\\\">(int)\", \"blocks\": 2, \"threads\": 256, "
        "\"instructions\": 300, \"warp_instructions\": 12, "
        "\"read_bytes\": 64, \"read_sectors\": 3, \"read_distinct_sectors\": 2, "
        "\"written_bytes\": 128, \"written_sectors\": 4, \"written_distinct_sectors\": 4}");
}

// ---- Watching -----------------------------------------------------------------------------------

TEST_CASE("ptx: an access outside of allocations is found") {
  CHECK(PlayBody("st.global.u32 [%rd1+128], 1;").findings.empty());
  CheckFound(PlayBody("st.global.u32 [%rd1+132], 1;"), "an access outside of allocations");
  CheckFound(PlayBody("ld.global.u32 %r1, [%rd0+-4];"), "an access outside of allocations");
  CheckFound(PlayBody("ld.global.u32 %r1, [16];"), "an access outside of allocations");
  CheckFound(PlayBody("ld.param.u64 %rd2, [y+8];"), "an access outside of allocations");
  CheckFound(PlayBody(".shared .align 4 .b8 s[4]; mov.u32 %r1, s; st.shared.u32 [%r1+4], 1;", 1),
             "an access outside of allocations");
  CheckFound(PlayBody(".local .align 4 .b8 l[4]; mov.u64 %rd2, l; st.local.u32 [%rd2+4], 1;"),
             "an access outside of allocations");
}

TEST_CASE("ptx: a misaligned access is found") {
  CheckFound(PlayBody("ld.global.u32 %r1, [%rd0+2];"), "a misaligned access");
  CheckFound(PlayBody("add.s64 %rd2, %rd0, 4; ld.global.v2.u32 {%r1, %r2}, [%rd2];"),
             "a misaligned access");
}

// Each thread writes its word of shared memory, and reads that of its neighbour, in two rounds.
std::string Exchange(const std::string& first, const std::string& second) {
  return ".shared .align 4 .b8 s[264]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, "
         "%r2;\n"
         "st.shared.u32 [%r1], %r0; setp.eq.s32 %p1, %r0, 0; @%p1 st.shared.u32 [%r1+256], 0;\n"
         "@%p1 st.shared.u32 [%r1+128], 0;\n" +
         first + "ld.shared.u32 %r3, [%r1+4];\n" + second +
         "st.shared.u32 [%r1], %r3; st.global.u32 [%rd1], %r3;";
}

TEST_CASE("ptx: accesses of shared memory without a barrier between them are found") {
  const std::string race = "two threads access shared memory with no barrier between them";
  const std::string block = "bar.sync 0;\n";
  const std::string warp = "bar.warp.sync -1;\n";
  const auto play = [](const std::string& body, int64_t threads) {
    return PlayBody(body, threads).findings;
  };
  // A warp that is alone needs no barrier of the block. Its second word is written twice above.
  CHECK(play(Exchange(warp, warp), 32).empty());
  CHECK(PlayBody(Exchange(block, block), 32).y[3] == 4);
  CHECK(play(Exchange(block, block), 64).size() == 1);  // Word 32 is of two threads.
  CheckFound(PlayBody(Exchange("", warp), 32), race);
  CheckFound(PlayBody(Exchange(warp, ""), 32), race);
  CheckFound(PlayBody(Exchange("", block), 32), race);
}

// Thread 0 reads the words of all, and each thread reads and writes its own, several times.
TEST_CASE("ptx: barriers of a warp order the rounds of a loop") {
  const auto body = [](const std::string& barrier) {
    return ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r2, %r1, "
           "%r2;\n"
           "setp.eq.s32 %p1, %r0, 0; mov.u32 %r5, 0; st.shared.u32 [%r2], %r0;\n$Loop:\n"
           "bar.warp.sync -1; @%p1 ld.shared.u32 %r4, [%r1+16];\n" +
           barrier +
           "ld.shared.u32 %r3, [%r2]; add.s32 %r3, %r3, 1; st.shared.u32 [%r2], %r3;\n"
           "add.s32 %r5, %r5, 1; setp.lt.s32 %p2, %r5, 3; @%p2 bra $Loop;\n"
           "st.global.u32 [%rd1], %r3;";
  };
  const Emulated sound = PlayBody(body("bar.warp.sync -1;\n"));
  CHECK(sound.findings.empty());
  CHECK(sound.y[4] == 7);
  CheckFound(PlayBody(body("")), "two threads access shared memory with no barrier between them");
}

TEST_CASE("ptx: a barrier of the warp does not order two warps") {
  const auto body = [](const std::string& barrier) {
    return ".shared .align 4 .b8 s[256]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; "
           "add.s32 %r2, %r1, %r2; st.shared.u32 [%r2], %r0;\n" +
           barrier +
           "sub.s32 %r3, 63, %r0; shl.b32 %r3, %r3, 2; add.s32 %r3, %r1, %r3;\n"
           "ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd1], %r4;";
  };
  const Emulated sound = PlayBody(body("bar.sync 0;"), 64);
  CHECK(sound.findings.empty());
  CHECK(sound.y[0] == 63);
  // One warp runs before the other, so it also reads what was not written.
  const Emulated racing = PlayBody(body("bar.warp.sync -1;"), 64);
  CHECK(std::any_of(racing.findings.begin(), racing.findings.end(), [](const std::string& finding) {
    return finding.find("two threads access shared memory with no barrier") == 0;
  }));
}

TEST_CASE("ptx: shared memory that is read before it is written is found, but not padding") {
  const std::string shared = ".shared .align 8 .b8 s[8]; mov.u32 %r1, s; ";
  CheckFound(PlayBody(shared + "ld.shared.u32 %r2, [%r1];", 1),
             "shared memory is read before it is written");
  CheckFound(PlayBody(shared + "st.shared.u32 [%r1], 1; ld.shared.u32 %r2, [%r1+4];", 1),
             "shared memory is read before it is written");
  CHECK(
      PlayBody(shared + "st.shared.u32 [%r1], 1; ld.shared.u64 %rd2, [%r1];", 1).findings.empty());
  // The memory of a block holds nothing of the block before.
  CheckFound(PlayText(KernelOf(shared + "mov.u32 %r2, %ctaid.x; setp.eq.s32 %p1, %r2, 0;\n"
                                        "@%p1 st.shared.u32 [%r1], 1; ld.shared.u32 %r3, [%r1];"),
                      1, 2),
             "shared memory is read before it is written");
}

TEST_CASE("ptx: a barrier that not all threads reach is found") {
  const std::string parts = "setp.lt.u32 %p1, %r0, 5; ";
  CheckFound(PlayBody(parts + "@%p1 bra $L1; bar.sync 0;\n$L1:", 64),
             "a barrier of the block is not reached by all of its threads");
  CheckFound(PlayBody(parts + "@%p1 bra $L1; bar.warp.sync -1;\n$L1:", 32),
             "a barrier of the warp is not reached by all of its threads");
  CheckFound(PlayBody(parts + "@%p1 bra $L1; bar.sync 0; bra $L2;\n$L1: bar.sync 0;\n$L2:", 64),
             "a barrier of the block is not reached by all of its threads");
  CHECK(PlayBody("bar.sync 0; bar.warp.sync -1; bar.sync 0;", 70).findings.empty());
}

TEST_CASE("ptx: a block beyond the launch bounds of its kernel is found") {
  CHECK(PlayText(KernelOf(""), 256).findings.empty());
  CheckFound(PlayText(KernelOf(""), 257), "a block has 257 threads, more than the 256");
}

}  // namespace
}  // namespace ckplan::ptx
