#include "lib/planning/plan/structural_match.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ckplan {
namespace {

struct Part {
  std::string name;
  std::string op;
  int64_t bytes = 0;
};

PlanDigest PlanOfParts(const std::vector<Part>& parts, const std::string& sha256 = "a") {
  PlanDigest digest;
  digest.model.sha256 = sha256;
  for (const Part& part : parts) {
    PlanDigest::Row row;
    row.name = part.name;
    row.tensor = part.name + ":0";
    row.op = part.op;
    row.decision.action = NodeAction::kKeep;
    row.bytes = Bytes(part.bytes);
    digest.rows.push_back(std::move(row));
  }
  return digest;
}

// Blocks of equal layers; every third halves the sizes, as in a ResNet.
std::vector<Part> Blocks(size_t count) {
  std::vector<Part> parts;
  int64_t bytes = 1 << 20;
  for (size_t block = 0; block < count; ++block) {
    if (block % 3 == 2 && bytes > 64) bytes /= 2;
    for (const char* const op : {"Conv", "BatchNormalization", "Relu", "Conv", "Add"}) {
      parts.push_back({"n" + std::to_string(parts.size()), op, bytes});
    }
  }
  return parts;
}

std::vector<Part> Renamed(std::vector<Part> parts) {
  for (Part& part : parts) part.name = "node_" + part.name;
  return parts;
}

RowPartners PairedBy(const std::vector<Part>& older, const std::vector<Part>& newer) {
  RowPartners partners(older.size(), kNoPartner);
  PairByStructure(PlanOfParts(older), PlanOfParts(newer, "b"), &partners);
  return partners;
}

TEST_CASE("structural match: a network with other names is paired completely") {
  for (const size_t blocks : {1u, 16u, 4000u}) {
    CAPTURE(blocks);
    const std::vector<Part> parts = Blocks(blocks);
    const RowPartners partners = PairedBy(parts, Renamed(parts));
    for (size_t i = 0; i < parts.size(); ++i) REQUIRE(partners[i] == i);
  }
}

TEST_CASE("structural match: nodes that only one export has leave the others paired") {
  const std::vector<Part> older = Blocks(16);
  std::vector<Part> newer = Renamed(older);
  newer.insert(newer.begin(), {"front", "Identity", 7});
  newer.insert(newer.begin() + 30, {"middle", "Identity", 1 << 19});
  newer.erase(newer.begin() + 52);
  newer.push_back({"back", "Reshape", 12});
  const RowPartners partners = PairedBy(older, newer);
  CHECK(std::count(partners.begin(), partners.end(), kNoPartner) == 1);
  CHECK(partners[0] == 1);
  CHECK(partners[28] == 29);
  CHECK(partners[29] == 31);
  CHECK(partners[79] == 80);
}

TEST_CASE("structural match: thousands of extra nodes are skipped, too") {
  const std::vector<Part> older = Blocks(2000);
  std::vector<Part> newer;
  for (const Part& part : Renamed(older)) {
    newer.push_back(part);
    if (part.op == "Relu") newer.push_back({part.name + "_id", "Identity", part.bytes});
  }
  const RowPartners partners = PairedBy(older, newer);
  CHECK(std::count(partners.begin(), partners.end(), kNoPartner) == 0);
}

TEST_CASE("structural match: branches in another order are paired by what occurs once") {
  const std::vector<Part> older = {{"stem", "Conv", 64}, {"a1", "Conv", 32}, {"a2", "Relu", 8},
                                   {"b1", "Conv", 16},   {"b2", "Relu", 4},  {"sum", "Concat", 12},
                                   {"head", "Gemm", 2}};
  const std::vector<Part> newer = {{"0", "Conv", 64}, {"1", "Conv", 16}, {"2", "Relu", 4},
                                   {"3", "Conv", 32}, {"4", "Relu", 8},  {"5", "Concat", 12},
                                   {"6", "Gemm", 2}};
  CHECK(PairedBy(older, newer) == RowPartners{0, 3, 4, 1, 2, 5, 6});
}

TEST_CASE("structural match: another batch is paired by operator and place") {
  const std::vector<Part> older = Blocks(12);
  for (const int64_t factor : {2, 4, 3}) {
    CAPTURE(factor);
    std::vector<Part> newer = Renamed(older);
    for (Part& part : newer) part.bytes *= factor;
    const RowPartners partners = PairedBy(older, newer);
    for (size_t i = 0; i < older.size(); ++i) CHECK(partners[i] == i);
  }
}

TEST_CASE("structural match: names stay although all sizes differ") {
  const std::vector<Part> older = Blocks(4);
  std::vector<Part> newer = older;
  for (Part& part : newer) part.bytes *= 2;
  const PlanDiff diff = DiffPlans(PlanOfParts(older), PlanOfParts(newer, "b"));
  CHECK(diff.paired_by_structure == 0);
  CHECK(diff.changes.size() == older.size());
}

TEST_CASE("structural match: different networks are not paired") {
  const std::vector<Part> older = Blocks(3);
  std::vector<Part> newer;
  for (int i = 0; i < 30; ++i)
    newer.push_back({std::to_string(i), i % 2 ? "MatMul" : "Softmax", i});
  newer.push_back({"r", "Relu", 1 << 20});
  CHECK(PairedBy(older, newer) == RowPartners(older.size(), kNoPartner));
}

TEST_CASE("structural match: a node that moved to another place is a new one") {
  const std::vector<Part> older = {
      {"a", "Conv", 8}, {"gone", "Relu", 8}, {"b", "Conv", 8}, {"c", "Gemm", 8}};
  const std::vector<Part> newer = {
      {"a", "Conv", 8}, {"b", "Conv", 8}, {"c", "Gemm", 8}, {"new", "Relu", 8}};
  RowPartners partners = {0, kNoPartner, 1, 2};
  CHECK(PairByStructure(PlanOfParts(older), PlanOfParts(newer, "b"), &partners) == 0);
  CHECK(partners[1] == kNoPartner);
}

TEST_CASE("structural match: nodes that are only numbered are paired by structure") {
  std::vector<Part> older = Blocks(8);
  std::vector<Part> newer = older;  // Two nodes more in front, so that each number moves by two.
  newer.insert(newer.begin(), {{"x", "Identity", 5}, {"y", "Identity", 5}});
  for (size_t i = 0; i < newer.size(); ++i) newer[i].name = "n" + std::to_string(i);
  const PlanDiff diff = DiffPlans(PlanOfParts(older), PlanOfParts(newer, "b"));
  CHECK(diff.paired_by_structure == static_cast<int64_t>(older.size()));
  CHECK(diff.changes.size() == 2);
}

TEST_CASE("structural match: plans of one model are matched by names alone") {
  const PlanDigest plan = PlanOfParts(Blocks(2));
  const PlanDigest renamed = PlanOfParts(Renamed(Blocks(2)));
  CHECK(DiffPlans(plan, renamed).paired_by_structure == 0);
}

}  // namespace
}  // namespace ckplan
