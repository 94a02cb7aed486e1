# Outside libraries; docs/dependencies.md says why each of them is here.
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
if(CKPLAN_TESTS)
  find_package(doctest REQUIRED)
endif()

# ONNX: the source release if one is named, else an installed one, the last place to look being where
# scripts/setup installs it.
include(${PROJECT_SOURCE_DIR}/scripts/cmake/onnx.cmake)
if(CKPLAN_ONNX_SOURCE_DIR)
  if(NOT EXISTS "${CKPLAN_ONNX_SOURCE_DIR}/CMakeLists.txt")
    message(FATAL_ERROR "CKPLAN_ONNX_SOURCE_DIR=${CKPLAN_ONNX_SOURCE_DIR} holds no CMakeLists.txt; "
      "it must name an unpacked ONNX source release.")
  endif()
  ckplan_add_onnx("${CKPLAN_ONNX_SOURCE_DIR}")
else()
  ckplan_find_onnx("${PROJECT_SOURCE_DIR}/build/deps/prefix")
  if(NOT ONNX_FOUND)
    message(FATAL_ERROR "No ONNX >= 1.19 is installed. scripts/setup obtains it; or pass -DONNX_DIR=DIR "
      "for an installed one, or -DCKPLAN_ONNX_SOURCE_DIR=DIR for an unpacked source release.")
  endif()
endif()
