# Installs the library into a folder of the build, builds examples/embed against it by find_package and by
# pkg-config, and compares what both write with the plan of `ckplan plan`.
set(folder ${BINARY_DIR}/embed/test)
file(REMOVE_RECURSE ${folder})
set(prefix ${folder}/prefix)
set(model ${SOURCE_DIR}/testdata/models/tiny_mlp.onnx)

function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${text}")
  endif()
endfunction()

must(${CMAKE_COMMAND} --install ${BINARY_DIR} --component dev --prefix ${prefix})
must(${CMAKE_COMMAND} -S ${SOURCE_DIR}/examples/embed -B ${folder}/build -G ${GENERATOR}
     -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER})
must(${CMAKE_COMMAND} --build ${folder}/build)
must(${PROGRAM} plan ${model} -D N=8 --budget 60% --no-config -q -o ${folder}/expected.json)
must(${folder}/build/embed ${model} 60 ${folder}/plan.json N=8)
must(${CMAKE_COMMAND} -E compare_files ${folder}/expected.json ${folder}/plan.json)

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${prefix}/*/ckplan.pc)
  cmake_path(GET pc PARENT_PATH pc_folder)
  set(ENV{PKG_CONFIG_PATH} ${pc_folder})
  must(sh -c "${COMPILER} '${SOURCE_DIR}/examples/embed/embed.cc' -o '${folder}/by_pkg_config' $('${PKG_CONFIG}' --define-variable=prefix='${prefix}' --cflags --libs ckplan)")
  must(${folder}/by_pkg_config ${model} 60 ${folder}/again.json N=8)
  must(${CMAKE_COMMAND} -E compare_files ${folder}/expected.json ${folder}/again.json)
endif()
