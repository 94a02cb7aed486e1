# Programs that run on other machines: all but the C library is linked into them. What is shared and
# not called, as {fmt} then, is left out by --as-needed.
set(Protobuf_USE_STATIC_LIBS ON)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed)

# {fmt} from its headers: distributions have it as a shared library alone.
macro(ckplan_use_fmt_headers)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endmacro()
