#include "cli/common/npy.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

std::string Npy(const std::string& header, const std::string& contents) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + contents;
}

TEST_CASE("npy: integers, booleans and floats of any shape are read") {
  CHECK(*NpyAsText(Npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }\n",
                       std::string("\x05\0\0\0\xff\xff\xff\xff", 8)),
                   "a.npy") == "[[5],[-1]]");
  CHECK(*NpyAsText(Npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n",
                       std::string("\x01", 1)),
                   "a.npy") == "1");
  CHECK(*NpyAsText(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n",
                       std::string("\0\0\0\x3f", 4)),
                   "a.npy") == "[0.5]");
}

TEST_CASE("npy: what is cut off, empty, too large or of another type is refused") {
  const auto code = [](const std::string& bytes) { return NpyAsText(bytes, "a.npy").error().code; };
  CHECK(code("") == ErrorCode::kInvalidInput);
  CHECK(code("\x93NUMPY") == ErrorCode::kInvalidInput);
  CHECK(code(Npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", "12345678")) ==
        ErrorCode::kInvalidInput);
  CHECK(code(Npy("{'descr': '<i8'}", "12345678")) == ErrorCode::kInvalidInput);
  CHECK(code(Npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }", "")) ==
        ErrorCode::kInvalidInput);
  for (const char* shape : {"(0,)", "(5000,)", "(9223372036854775807, 9223372036854775807)"}) {
    CHECK(code(Npy(std::string("{'descr': '<i8', 'fortran_order': False, 'shape': ") + shape + "}",
                   "12345678")) == ErrorCode::kUnsupported);
  }
  for (const char* type : {">i8", "|O", "<U3", "<c8"}) {
    CHECK(
        code(Npy(std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (1,), }",
                 "12345678")) == ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace ckplan
