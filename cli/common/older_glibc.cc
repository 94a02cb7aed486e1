// Lets programs that are built with a current GNU C library also run with 2.28 (RHEL 8, Debian 10).
//
// A linked program requires each C function in the newest version that the library had when the
// program was linked, such as `pthread_create@GLIBC_2.34`. A program linked on Debian 12 therefore
// does not start with an older library, although that library has all it needs. This file requests
// the versions that the C library of x86-64 has had from the beginning, which later libraries keep,
// and defines the functions that 2.28 lacks. The linker's --wrap turns each call of FUNCTION, in
// all statically linked code, into a call of __wrap_FUNCTION; scripts/cmake/portable.cmake reads
// the names from this file.
//
// Only the programs of the Python package use this file (CKPLAN_WHEEL). The names are the C
// library's.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

// Makes calls of FUNCTION use its oldest version.
#define CKPLAN_OLDEST(function)                 \
  asm(".symver older_" #function ", " #function \
      "@GLIBC_2.2.5\n"                          \
      ".globl __wrap_" #function                \
      "\n"                                      \
      ".hidden __wrap_" #function               \
      "\n"                                      \
      ".type __wrap_" #function                 \
      ", @function\n"                           \
      "__wrap_" #function ": jmp *older_" #function "@GOTPCREL(%rip)\n")

// Threads: 2.34 moved these functions from their own library, which programs for older versions
// must name.
CKPLAN_OLDEST(__pthread_key_create);
CKPLAN_OLDEST(pthread_create);
CKPLAN_OLDEST(pthread_detach);
CKPLAN_OLDEST(pthread_getspecific);
CKPLAN_OLDEST(pthread_join);
CKPLAN_OLDEST(pthread_key_create);
CKPLAN_OLDEST(pthread_key_delete);
CKPLAN_OLDEST(pthread_once);
CKPLAN_OLDEST(pthread_rwlock_rdlock);
CKPLAN_OLDEST(pthread_rwlock_unlock);
CKPLAN_OLDEST(pthread_rwlock_wrlock);
CKPLAN_OLDEST(pthread_setspecific);
// 2.29 has versions of these functions that set no errno.
CKPLAN_OLDEST(exp);
CKPLAN_OLDEST(log);
CKPLAN_OLDEST(pow);

// NOLINTBEGIN(bugprone-reserved-identifier,performance-no-int-to-ptr)
#define CKPLAN_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// Before 2.33, `stat` and its variants were names for these functions, whose first argument is the
// version of the answer's layout.
asm(".symver __xstat, __xstat@GLIBC_2.2.5\n"
    ".symver __lxstat, __lxstat@GLIBC_2.2.5\n"
    ".symver __fxstat, __fxstat@GLIBC_2.2.5\n");
int __xstat(int form, const char* path, struct stat* answer) noexcept;
int __lxstat(int form, const char* path, struct stat* answer) noexcept;
int __fxstat(int form, int file, struct stat* answer) noexcept;

CKPLAN_HIDDEN int __wrap_stat(const char* path, struct stat* answer) {
  return __xstat(1, path, answer);
}
CKPLAN_HIDDEN int __wrap_stat64(const char* path, struct stat* answer) {
  return __xstat(1, path, answer);
}
CKPLAN_HIDDEN int __wrap_lstat(const char* path, struct stat* answer) {
  return __lxstat(1, path, answer);
}
CKPLAN_HIDDEN int __wrap_lstat64(const char* path, struct stat* answer) {
  return __lxstat(1, path, answer);
}
CKPLAN_HIDDEN int __wrap_fstat(int file, struct stat* answer) { return __fxstat(1, file, answer); }
CKPLAN_HIDDEN int __wrap_fstat64(int file, struct stat* answer) {
  return __fxstat(1, file, answer);
}

// The start of a program. Since 2.34 the C library calls the constructors of the program's own
// static objects. Before, the program contained a function that does so.
using Start = void (*)();
using Constructor = void (*)(int, char**, char**);
extern const Constructor __preinit_array_start[] CKPLAN_HIDDEN;
extern const Constructor __preinit_array_end[] CKPLAN_HIDDEN;
extern const Constructor __init_array_start[] CKPLAN_HIDDEN;
extern const Constructor __init_array_end[] CKPLAN_HIDDEN;
CKPLAN_HIDDEN void _init();

asm(".symver older_start, __libc_start_main@GLIBC_2.2.5");
int older_start(int (*run)(int, char**, char**), int count, char** arguments, Constructor construct,
                Start destroy, Start unload, void* stack);

static void Construct(int count, char** arguments, char** environment) {
  for (const Constructor* each = __preinit_array_start; each < __preinit_array_end; ++each) {
    (*each)(count, arguments, environment);
  }
  _init();
  for (const Constructor* each = __init_array_start; each < __init_array_end; ++each) {
    (*each)(count, arguments, environment);
  }
}

CKPLAN_HIDDEN int __wrap___libc_start_main(int (*run)(int, char**, char**), int count,
                                           char** arguments, Constructor, Start, Start unload,
                                           void* stack) {
  return older_start(run, count, arguments, Construct, nullptr, unload, stack);
}

// Since 2.32: whether there is only one thread. If it is not 0, atomic operations are skipped.
CKPLAN_HIDDEN char __wrap___libc_single_threaded = 0;

// Since 2.30: waits by any clock. Older versions only wait by the time of day, which may be set
// during the wait; callers look at their own clock when they wake up.
CKPLAN_HIDDEN int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                clockid_t clock, const timespec* until) {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec now{};
  timespec day{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const int64_t seconds = until->tv_sec - now.tv_sec + day.tv_sec;
  const int64_t nanoseconds =
      until->tv_nsec - now.tv_nsec + day.tv_nsec + kSecond;  // From 1 to 3 seconds.
  timespec deadline{};
  deadline.tv_sec = seconds - 1 + nanoseconds / kSecond;
  deadline.tv_nsec = nanoseconds % kSecond;
  return pthread_cond_timedwait(condition, mutex, &deadline);
}

// Since 2.36: returns a random number, for std::random_device.
CKPLAN_HIDDEN uint32_t __wrap_arc4random() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) {
    abort();
  }
  return number;
}

// Since 2.35: finds the unwind tables of the code at an address.
static int FindTables(dl_phdr_info* object, size_t, void* found) {
  auto* answer = static_cast<dl_find_object*>(found);
  const auto address = reinterpret_cast<uintptr_t>(answer->dlfo_map_start);
  bool is_inside = false;
  uintptr_t tables = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part.p_vaddr;
    is_inside =
        is_inside || (part.p_type == PT_LOAD && address >= start && address - start < part.p_memsz);
    tables = part.p_type == PT_GNU_EH_FRAME ? start : tables;
  }
  if (!is_inside || tables == 0) {
    return 0;
  }
  answer->dlfo_eh_frame = reinterpret_cast<void*>(tables);
  return 1;
}

CKPLAN_HIDDEN int __wrap__dl_find_object(void* address, dl_find_object* answer) {
  *answer = {};
  answer->dlfo_map_start = address;
  return dl_iterate_phdr(FindTables, answer) == 1 ? 0 : -1;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,performance-no-int-to-ptr)
