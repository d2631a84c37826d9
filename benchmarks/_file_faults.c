/* Faults in file operations: a library for LD_PRELOAD, which _file_faults.py compiles and controls.

The plan is in a small file that all processes map, so that a forked or started process needs nothing but the environment
variable VERYDEEP_FAULTS with its path, and operations are counted over all of them. Only files below the plan's folder are
watched. Files that C writes with fwrite or through a memory map are not seen. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef open
#undef open64
#undef openat
#undef openat64
#undef creat
#undef creat64

enum { COUNT, KILL, FAIL, FAIL_ON, SHORT, TEAR, POWER };

struct plan {
    _Atomic int64_t count;  /* operations so far */
    int64_t at;             /* the operation that meets the fault; the first is 1 */
    int32_t action, error;
    int32_t reads;          /* whether opening for reading, and reading, are operations too */
    _Atomic int32_t met;    /* whether the fault has happened */
    char folder[1024];
    char operation[1024];   /* the operation that met it */
};

static struct plan *plan;

/* Not yet on the disk: what a loss of power takes away. One process, which is enough for what is tested with it. */
#define MOST 64
static struct { char path[PATH_MAX]; off_t size; } unsynced[MOST];
static struct { char from[PATH_MAX], to[PATH_MAX], kept[PATH_MAX]; } renamed[MOST];
static int unsynced_count, renamed_count;


__attribute__((constructor)) static void start(void) {
    const char *path = getenv("VERYDEEP_FAULTS");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *found = mmap(NULL, sizeof(struct plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (found != MAP_FAILED) plan = found;
}

static int path_of(int fd, char *path) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, name, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static void absolute(int folder, const char *path, char *whole) {
    char base[PATH_MAX] = "";
    if (path[0] == '/') snprintf(whole, PATH_MAX, "%s", path);
    else {
        if (folder == AT_FDCWD) { if (syscall(SYS_getcwd, base, sizeof base) < 0) base[0] = 0; }
        else path_of(folder, base);
        snprintf(whole, PATH_MAX, "%.*s/%s", PATH_MAX / 2, base, path);
    }
}

static int watched(const char *path) {
    size_t length = plan ? strlen(plan->folder) : 0;
    return length && !strncmp(path, plan->folder, length) && (path[length] == '/' || !path[length]);
}

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); for (;;) pause(); }

static void lose_power(void) {
    for (int i = renamed_count - 1; i >= 0; i--) {
        syscall(SYS_renameat2, AT_FDCWD, renamed[i].to, AT_FDCWD, renamed[i].from, 0);
        if (renamed[i].kept[0]) syscall(SYS_renameat2, AT_FDCWD, renamed[i].kept, AT_FDCWD, renamed[i].to, 0);
    }
    for (int i = 0; i < unsynced_count; i++) syscall(SYS_truncate, unsynced[i].path, unsynced[i].size);
    die();
}

static void forget_kept(int i) { if (renamed[i].kept[0]) syscall(SYS_unlinkat, AT_FDCWD, renamed[i].kept, 0); }

static void synced(const char *path) {
    for (int i = 0; i < unsynced_count; i++)
        if (!strcmp(unsynced[i].path, path)) unsynced[i--] = unsynced[--unsynced_count];
    size_t length = strlen(path);
    for (int i = 0; i < renamed_count; i++) {  /* a folder: its renames are on the disk */
        const char *to = renamed[i].to;
        if (!strncmp(to, path, length) && to[length] == '/' && !strchr(to + length + 1, '/')) {
            forget_kept(i);
            memmove(renamed + i, renamed + i + 1, (size_t)(--renamed_count - i) * sizeof *renamed);
            i--;
        }
    }
}

static void will_write(const char *path) {
    struct stat found;
    for (int i = 0; i < unsynced_count; i++) if (!strcmp(unsynced[i].path, path)) return;
    if (unsynced_count == MOST || stat(path, &found)) return;
    strcpy(unsynced[unsynced_count].path, path);
    unsynced[unsynced_count++].size = found.st_size;
}

static void will_rename(const char *from, const char *to) {
    for (int i = 0; i < unsynced_count; i++) if (!strcmp(unsynced[i].path, from)) strcpy(unsynced[i].path, to);
    if (renamed_count == MOST) return;
    int i = renamed_count++;
    strcpy(renamed[i].from, from);
    strcpy(renamed[i].to, to);
    snprintf(renamed[i].kept, PATH_MAX, "%s/../.kept-%d-%d", plan->folder, getpid(), i);
    if (syscall(SYS_linkat, AT_FDCWD, to, AT_FDCWD, renamed[i].kept, 0)) renamed[i].kept[0] = 0;
}

/* Count an operation. Returns 0 to go on, an error number to fail with, or -1 to write only a part. */
static int operation(const char *name, const char *path, int is_write) {
    if (!watched(path)) return 0;
    int64_t number = atomic_fetch_add(&plan->count, 1) + 1;
    int action = plan->action, is_met = plan->met;
    if (action == COUNT || number < plan->at) return 0;
    if (is_met && action != FAIL_ON) return 0;
    if ((action == FAIL || action == FAIL_ON) && plan->error != EIO && !strcmp(name, "unlink")) return 0;  /* full disks allow it */
    if ((action == SHORT || action == TEAR) && !is_write) return 0;  /* the next write */
    if (!is_met) {
        plan->met = 1;
        snprintf(plan->operation, sizeof plan->operation, "%s %s", name, path);
    }
    if (action == KILL) die();
    if (action == POWER) lose_power();
    return action == FAIL || action == FAIL_ON ? plan->error : -1;
}

#define FAULT(name, path, failed) \
    int fault = operation(name, path, 0); \
    if (fault > 0) { errno = fault; return failed; }

static int open_file(int folder, const char *path, int flags, mode_t mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    if (plan && (writes || plan->reads)) {
        char whole[PATH_MAX];
        absolute(folder, path, whole);
        FAULT(writes ? "open" : "open to read", whole, -1);
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE return open_file(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_file(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return open_file(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return open_file(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* Whether a write may go on: 0, or an error, or -1 for only a part; for files that are not watched always 0. */
static int before_write(const char *name, int fd) {
    char path[PATH_MAX];
    if (!plan || fd <= 2 || !path_of(fd, path) || !watched(path)) return 0;
    int fault = operation(name, path, 1);
    if (!fault && plan->action == POWER) will_write(path);
    return fault;
}

#define WRITE(name, whole, half) \
    int fault = before_write(name, fd); \
    if (fault > 0) { errno = fault; return -1; } \
    ssize_t done = fault < 0 && size > 1 ? (half) : (whole); \
    if (fault < 0 && plan->action == TEAR) die(); \
    return done

ssize_t write(int fd, const void *data, size_t size) {
    WRITE("write", syscall(SYS_write, fd, data, size), syscall(SYS_write, fd, data, size / 2));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    WRITE("pwrite", syscall(SYS_pwrite64, fd, data, size, at), syscall(SYS_pwrite64, fd, data, size / 2, at));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) {
    size_t size = count > 0 ? parts[0].iov_len : 0;
    WRITE("writev", syscall(SYS_writev, fd, parts, count), syscall(SYS_write, fd, parts[0].iov_base, size / 2));
}

ssize_t read(int fd, void *data, size_t size) {
    char path[PATH_MAX];
    if (plan && plan->reads && fd > 2 && path_of(fd, path)) {
        int fault = operation("read", path, 0);
        if (fault > 0) { errno = fault; return -1; }
    }
    return syscall(SYS_read, fd, data, size);
}

static int rename_file(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (plan) {
        char source[PATH_MAX], target[PATH_MAX];
        absolute(from_folder, from, source);
        absolute(to_folder, to, target);
        FAULT("rename", target, -1);
        if (plan->action == POWER && watched(target)) will_rename(source, target);
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
int rename(const char *from, const char *to) { return rename_file(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return rename_file(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return rename_file(a, from, b, to, flags); }

static int on_path(const char *name, int folder, const char *path) {
    char whole[PATH_MAX];
    if (!plan) return 0;
    absolute(folder, path, whole);
    return operation(name, whole, 0);
}
#define ON_PATH(name, folder, call) \
    int fault = on_path(name, folder, path); \
    if (fault > 0) { errno = fault; return -1; } \
    return (int)(call)

int unlinkat(int folder, const char *path, int flags) { ON_PATH("unlink", folder, syscall(SYS_unlinkat, folder, path, flags)); }
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdirat(int folder, const char *path, mode_t mode) { ON_PATH("mkdir", folder, syscall(SYS_mkdirat, folder, path, mode)); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int linkat(int a, const char *from, int b, const char *path, int flags) {
    ON_PATH("link", b, syscall(SYS_linkat, a, from, b, path, flags));
}
int link(const char *from, const char *path) { return linkat(AT_FDCWD, from, AT_FDCWD, path, 0); }
int truncate(const char *path, off_t size) { ON_PATH("truncate", AT_FDCWD, syscall(SYS_truncate, path, size)); }
int truncate64(const char *path, off_t size) { return truncate(path, size); }

static int on_file(const char *name, int fd, int is_sync) {
    char path[PATH_MAX];
    if (!plan || !path_of(fd, path)) return 0;
    int fault = operation(name, path, 0);
    if (!fault && is_sync && plan->action == POWER) synced(path);
    return fault;
}
#define ON_FILE(name, is_sync, call) \
    int fault = on_file(name, fd, is_sync); \
    if (fault > 0) { errno = fault; return -1; } \
    return (int)(call)

int fsync(int fd) { ON_FILE("fsync", 1, syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { ON_FILE("fdatasync", 1, syscall(SYS_fdatasync, fd)); }
int ftruncate(int fd, off_t size) { ON_FILE("ftruncate", 0, syscall(SYS_ftruncate, fd, size)); }
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }
