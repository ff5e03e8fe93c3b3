/* Makes every look at one path, and at all below it, fail with a chosen error.
 *
 * Preloaded into a process of the program, whose code is unchanged. `fail_below(path, error)` sets
 * the fault and `fail_below("", 0)` lifts it. `failures()` counts the calls that failed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))

static char top[4096];
static int chosen;
static long failed;

EXPORTED void fail_below(const char *path, int error) {
    strncpy(top, path, sizeof top - 1);
    chosen = error;
}

EXPORTED long failures(void) { return failed; }

static int fails(const char *path) {
    size_t length = strlen(top);
    if (!chosen || !length || !path || strncmp(path, top, length)) return 0;
    if (path[length] && path[length] != '/') return 0;
    failed++;
    errno = chosen;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                             \
    EXPORTED int name(const char *path, int flags, ...) {      \
        va_list rest;                                          \
        va_start(rest, flags);                                 \
        mode_t mode = va_arg(rest, mode_t);                    \
        va_end(rest);                                          \
        return fails(path) ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                       \
    EXPORTED int name(int directory, const char *path, int flags, ...) {   \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        mode_t mode = va_arg(rest, mode_t);                                \
        va_end(rest);                                                      \
        return fails(path) ? -1 : REAL(name)(directory, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

#define STAT(name, type)                                          \
    EXPORTED int name(const char *path, struct type *status) {    \
        return fails(path) ? -1 : REAL(name)(path, status);       \
    }
STAT(stat, stat)
STAT(lstat, stat)
STAT(stat64, stat64)
STAT(lstat64, stat64)

#define STATAT(name, type)                                                              \
    EXPORTED int name(int directory, const char *path, struct type *status, int flags) { \
        return fails(path) ? -1 : REAL(name)(directory, path, status, flags);            \
    }
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)

EXPORTED DIR *opendir(const char *path) { return fails(path) ? NULL : REAL(opendir)(path); }

extern int access(const char *path, int mode);
EXPORTED int access(const char *path, int mode) {
    return fails(path) ? -1 : REAL(access)(path, mode);
}

extern ssize_t readlink(const char *path, char *target, size_t size);
EXPORTED ssize_t readlink(const char *path, char *target, size_t size) {
    return fails(path) ? -1 : REAL(readlink)(path, target, size);
}
