# Programs that run on other machines: all but the C library is linked into them.
set(Protobuf_USE_STATIC_LIBS ON)
add_link_options(-static-libstdc++ -static-libgcc)

# Lets the imported TARGET stand for libNAME.a.
function(ckplan_link_statically target name)
  find_library(CKPLAN_STATIC_${name} lib${name}.a REQUIRED)
  mark_as_advanced(CKPLAN_STATIC_${name})
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION_${configuration} "${CKPLAN_STATIC_${name}}")
  endforeach()
endfunction()
