# Fails if a file includes a header that its folder must not see: an outside library reserved for one folder,
# a private header of another folder of lib/, or a header that only tests may use.
#
#   SOURCE_DIR      the root of the project
#   PUBLIC_HEADERS  "files/model/model.h;...": all other headers of these folders are private
#   STAMP           the file to touch if there is no fault
cmake_minimum_required(VERSION 3.25)

# The columns are: pattern of included headers | pattern of the files that may include them | those files in
# words
set(walls
  "onnx/|google/protobuf/"   "^lib/files/model/"                 "the sources and private headers of lib/files/model"
  "nlohmann/"                "^lib/(files/emit|problem/cost|testing)/|_test\\.cc$" "lib/files/emit, lib/problem/cost, lib/testing and tests"
  "CLI/"                     "^cli/common/command_line\\.cc$" "cli/common/command_line.cc"
  "toml"                     "^cli/common/config_file\\.cc$" "cli/common/config_file.cc"
  "oneapi/|dnnl"             "^lib/executor/cpu/"                   "lib/executor/cpu"
  "highs/|interfaces/highs"  "^lib/planning/mip/[a-z_]+\\.cc$"       "the sources of lib/planning/mip"
  "cuda[_.]|cublas|cudnn"    "^lib/executor/cuda/"                  "lib/executor/cuda"
  "valijson/"                "^lib/testing/"               "lib/testing"
  "(lib|cli)/.*testing"      "testing|_test\\.cc$|^cli/fuzzing/|^lib/executor/cuda/launch\\.h$"
  "tests, fuzz targets, and launch.h where tests compile it for the host")

set(folders "")
foreach(header IN LISTS PUBLIC_HEADERS)
  string(REGEX REPLACE "^([a-z]+/[a-z]+)/.*" "\\1" folder "${header}")
  list(APPEND folders "${folder}")
endforeach()

set(faults "")
macro(check_line)
  string(REGEX REPLACE "^#include [<\"]([^>\"]*)[>\"].*" "\\1" included "${line}")
  set(rest ${walls})
  while(rest)
    list(POP_FRONT rest what by_whom in_words)
    if(included MATCHES "^(${what})" AND (is_public OR NOT file MATCHES "${by_whom}"))
      list(APPEND faults "${file} includes ${included}, which only ${in_words} may")
    endif()
  endwhile()
  if(included MATCHES "^lib/([a-z]+/[a-z]+)/(.*)$" AND CMAKE_MATCH_1 IN_LIST folders)
    set(folder "${CMAKE_MATCH_1}")
    if(NOT "${folder}/${CMAKE_MATCH_2}" IN_LIST PUBLIC_HEADERS AND (is_public OR NOT file MATCHES "^lib/${folder}/"))
      list(APPEND faults "${file} includes ${included}, which is private to lib/${folder}: PUBLIC_HEADERS in lib/${folder}/CMakeLists.txt are what others may include")
    endif()
  endif()
endmacro()

file(GLOB_RECURSE files RELATIVE "${SOURCE_DIR}"
  "${SOURCE_DIR}/lib/*.h" "${SOURCE_DIR}/lib/*.cc" "${SOURCE_DIR}/lib/*.cu" "${SOURCE_DIR}/cli/*.h" "${SOURCE_DIR}/cli/*.cc")
foreach(file IN LISTS files)
  string(REGEX REPLACE "^lib/" "" name "${file}")
  set(is_public FALSE)
  if(name IN_LIST PUBLIC_HEADERS)
    set(is_public TRUE)
  endif()
  file(STRINGS "${SOURCE_DIR}/${file}" lines
    REGEX "^#include [<\"](onnx|google|nlohmann|CLI|toml|oneapi|dnnl|highs|interfaces|cu|valijson|lib|cli)")
  foreach(line IN LISTS lines)
    check_line()
  endforeach()
endforeach()
if(faults)
  list(JOIN faults "\n  " text)
  message(FATAL_ERROR "Includes that docs/architecture.md does not allow:\n  ${text}")
endif()
file(TOUCH "${STAMP}")
