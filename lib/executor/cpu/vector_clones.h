// An attribute for functions that are one loop over many floats. Such a function is compiled once
// for each width of vector instructions, and the program selects the widest that the processor
// supports when it starts. Results may differ in the last bit between processors, but not between
// runs on one processor.
#pragma once

// Sanitizers are initialised too late for this selection.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(CKPLAN_SANITIZED)
#define CKPLAN_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CKPLAN_VECTOR_CLONES
#endif
