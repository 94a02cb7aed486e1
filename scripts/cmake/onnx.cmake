# ONNX as the target ONNX::onnx. Releases below 1.19 lack what today's files need (IR 10 and up,
# metadata on nodes).

# Finds an installed one; the folders PREFIX... are searched last. Sets ONNX_FOUND.
macro(ckplan_find_onnx)
  # ONNX's own config file names protobuf's target without looking for it. From 22 on, protobuf
  # is to be found by its config file, which brings its dependency abseil; Debian 12 has none.
  find_package(Protobuf CONFIG QUIET)
  if(NOT Protobuf_FOUND)
    find_package(Protobuf QUIET)
  endif()
  if(Protobuf_FOUND)
    find_package(ONNX 1.19 CONFIG QUIET PATHS ${ARGN})
  endif()
endmacro()

# Builds the unpacked source release in SOURCE_DIR as part of this build.
function(ckplan_add_onnx source_dir)
  set(ONNX_ML ON CACHE BOOL "" FORCE)
  set(ONNX_BUILD_PYTHON OFF CACHE BOOL "" FORCE)
  set(ONNX_BUILD_TESTS OFF CACHE BOOL "" FORCE)
  set(ONNX_INSTALL OFF CACHE BOOL "" FORCE)
  set(ONNX_USE_PROTOBUF_SHARED_LIBS ON CACHE BOOL "" FORCE)
  set(ONNX_USE_UNITY_BUILD ON CACHE BOOL "" FORCE)
  add_subdirectory("${source_dir}" "${CMAKE_BINARY_DIR}/onnx" EXCLUDE_FROM_ALL SYSTEM)
  if(NOT TARGET ONNX::onnx)
    add_library(ONNX::onnx ALIAS onnx)
  endif()
endfunction()
