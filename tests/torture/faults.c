/* Makes calls of the C library fail, below one folder, once they are armed. Loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, CREATE = 2, SYNC = 4, RENAME = 8, MKDIR = 16, READ = 32, OPEN = 64 };
static int armed, code, lasting;
static long left;
static char below[PATH_MAX];

/* operations: a set of the above. The call number `countdown` (from 0) fails with `error`, and all later ones if
   `stays`. */
void torture_arm(const char *folder, int operations, int error, long countdown, int stays) {
    strncpy(below, folder, sizeof below - 1);
    code = error, left = countdown, lasting = stays, armed = operations;
}

static int fails(int operation, const char *path) {
    char absolute[PATH_MAX];
    if (!(armed & operation) || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(absolute, sizeof absolute)) return 0;
        path = absolute;
    }
    if (strncmp(path, below, strlen(below))) return 0;
    if (left-- > 0) return 0;
    if (!lasting && left < -1) return 0;
    errno = code;
    return 1;
}

static int fails_at(int operation, int descriptor) {
    char link[64], path[PATH_MAX];
    if (!(armed & operation)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(operation, path);
}

#define NEXT(name) static __typeof__(name) *next; if (!next) next = dlsym(RTLD_NEXT, #name)
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (fails(flags & O_CREAT ? CREATE : OPEN, path)) return -1; \
        return next(path, flags, mode); \
    }
#define OPENS_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        NEXT(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        int which = flags & O_CREAT ? CREATE : OPEN; \
        if (path[0] == '/' || folder == AT_FDCWD ? fails(which, path) : fails_at(which, folder)) return -1; \
        return next(folder, path, flags, mode); \
    }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
ssize_t write(int f, const void *b, size_t n) { NEXT(write); return fails_at(WRITE, f) ? -1 : next(f, b, n); }
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) {
    NEXT(pwrite64);
    return fails_at(WRITE, f) ? -1 : next(f, b, n, o);
}
ssize_t writev(int f, const struct iovec *v, int n) { NEXT(writev); return fails_at(WRITE, f) ? -1 : next(f, v, n); }
ssize_t read(int f, void *b, size_t n) { NEXT(read); return fails_at(READ, f) ? -1 : next(f, b, n); }
int fsync(int f) { NEXT(fsync); return fails_at(SYNC, f) ? -1 : next(f); }
int rename(const char *a, const char *b) { NEXT(rename); return fails(RENAME, a) ? -1 : next(a, b); }
int mkdir(const char *path, mode_t mode) { NEXT(mkdir); return fails(MKDIR, path) ? -1 : next(path, mode); }
