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

# oneDNN and OpenMP: for the executor alone.
set(CKPLAN_EXECUTOR_FOUND OFF)
if(NOT CKPLAN_EXECUTOR MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "CKPLAN_EXECUTOR=${CKPLAN_EXECUTOR} must be AUTO, ON or OFF.")
endif()
if(NOT CKPLAN_EXECUTOR STREQUAL "OFF")
  include(${PROJECT_SOURCE_DIR}/scripts/cmake/onednn.cmake)
  ckplan_find_onednn("${PROJECT_SOURCE_DIR}/build/deps/onednn")
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(CKPLAN_ONEDNN_FOUND AND OpenMP_CXX_FOUND)
    set(CKPLAN_EXECUTOR_FOUND ON)
    message(STATUS "Executor: oneDNN ${dnnl_VERSION} in ${dnnl_DIR}")
  else()
    set(CKPLAN_EXECUTOR_MISSING "${CKPLAN_ONEDNN_MISSING}")
    if(CKPLAN_ONEDNN_FOUND)
      set(CKPLAN_EXECUTOR_MISSING "the compiler knows no OpenMP")
    endif()
    if(CKPLAN_EXECUTOR STREQUAL "ON")
      message(FATAL_ERROR "CKPLAN_EXECUTOR=ON, but ${CKPLAN_EXECUTOR_MISSING}. scripts/setup "
        "--executor obtains oneDNN; or pass -Ddnnl_DIR=DIR for an installed one, or "
        "-DCKPLAN_EXECUTOR=OFF to build the planner alone.")
    endif()
    message(STATUS "Executor: not built, as ${CKPLAN_EXECUTOR_MISSING}; see docs/dependencies.md")
  endif()
endif()
