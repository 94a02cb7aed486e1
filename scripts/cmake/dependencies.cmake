# Outside libraries; docs/dependencies.md says why each of them is used.
if(CKPLAN_PORTABLE OR CKPLAN_WHEEL)
  include(${PROJECT_SOURCE_DIR}/scripts/cmake/portable.cmake)
endif()
find_package(fmt REQUIRED)
if(CKPLAN_PORTABLE OR CKPLAN_WHEEL)
  ckplan_use_fmt_headers()
endif()
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(tomlplusplus 3.3 REQUIRED)
# Only the headers of toml++ are used, because Debian's target is a shared library.
add_library(ckplan_toml INTERFACE)
target_include_directories(ckplan_toml SYSTEM INTERFACE
  $<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>)
if(CKPLAN_TESTS)
  find_package(doctest REQUIRED)
endif()

# ONNX comes from the named source release if there is one, and otherwise from an installed ONNX. The folder
# in which scripts/setup installs ONNX is searched last.
include(${PROJECT_SOURCE_DIR}/scripts/cmake/onnx.cmake)
if(CKPLAN_ONNX_SOURCE_DIR)
  if(NOT EXISTS "${CKPLAN_ONNX_SOURCE_DIR}/CMakeLists.txt")
    message(FATAL_ERROR "CKPLAN_ONNX_SOURCE_DIR=${CKPLAN_ONNX_SOURCE_DIR} holds no CMakeLists.txt; "
      "it must name an unpacked ONNX source release.")
  endif()
  ckplan_add_onnx("${CKPLAN_ONNX_SOURCE_DIR}")
else()
  ckplan_find_onnx("${CKPLAN_DEPS_DIR}/prefix")
  if(NOT ONNX_FOUND)
    message(FATAL_ERROR "No ONNX >= 1.19 is installed. scripts/setup obtains it, and -DCKPLAN_DEPS_DIR=CHECKOUT/build/deps "
      "names it to sources in another folder; or pass -DONNX_DIR=DIR for an installed one, or "
      "-DCKPLAN_ONNX_SOURCE_DIR=DIR for an unpacked source release.")
  endif()
endif()

foreach(option CKPLAN_MIP CKPLAN_EXECUTOR CKPLAN_CUDA)
  if(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option}=${${option}} must be AUTO, ON or OFF.")
  endif()
endforeach()

# HiGHS solves mixed-integer programs. It is a shared library, so portable programs do without it.
set(CKPLAN_HIGHS_FOUND OFF)
include(${PROJECT_SOURCE_DIR}/scripts/cmake/highs.cmake)
if(NOT CKPLAN_MIP STREQUAL "OFF" AND NOT CKPLAN_PORTABLE)
  ckplan_find_highs("${CKPLAN_DEPS_DIR}/highs")
  if(CKPLAN_HIGHS_FOUND)
    message(STATUS "Mixed-integer programs: HiGHS ${CKPLAN_HIGHS_VERSION}")
  elseif(CKPLAN_MIP STREQUAL "ON")
    message(FATAL_ERROR "CKPLAN_MIP=ON, but no HiGHS >= 1.15 is installed. scripts/setup obtains it; "
      "or pass -Dhighs_DIR=DIR for an installed one, or -DCKPLAN_MIP=OFF to build without.")
  else()
    message(STATUS "Mixed-integer programs: none, as no HiGHS >= 1.15 is installed; see docs/dependencies.md")
  endif()
endif()

# Only the executor's CPU backend uses oneDNN and OpenMP.
set(CKPLAN_CPU_FOUND OFF)
if(NOT CKPLAN_EXECUTOR STREQUAL "OFF" AND NOT CKPLAN_PORTABLE)
  include(${PROJECT_SOURCE_DIR}/scripts/cmake/onednn.cmake)
  ckplan_find_onednn("${CKPLAN_DEPS_DIR}/onednn")
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(CKPLAN_ONEDNN_FOUND AND OpenMP_CXX_FOUND)
    set(CKPLAN_CPU_FOUND ON)
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
    message(STATUS "Executor: no CPU backend, as ${CKPLAN_EXECUTOR_MISSING}; see docs/dependencies.md")
  endif()
endif()

# The executor's second backend uses CUDA.
set(CKPLAN_CUDA_FOUND OFF)
if(NOT CKPLAN_EXECUTOR STREQUAL "OFF" AND NOT CKPLAN_CUDA STREQUAL "OFF")
  include(${PROJECT_SOURCE_DIR}/scripts/cmake/cuda.cmake)
  ckplan_find_cuda()
  if(CKPLAN_CUDA_FOUND)
    message(STATUS "Executor: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${CKPLAN_CUDA_ARCHITECTURES}")
  elseif(CKPLAN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CKPLAN_CUDA=ON, but ${CKPLAN_CUDA_MISSING}.")
  else()
    message(STATUS "Executor: no CUDA backend, as ${CKPLAN_CUDA_MISSING}")
  endif()
endif()

# The executor is built if it has a backend.
set(CKPLAN_EXECUTOR_FOUND OFF)
if(CKPLAN_CPU_FOUND OR CKPLAN_CUDA_FOUND)
  set(CKPLAN_EXECUTOR_FOUND ON)
endif()
