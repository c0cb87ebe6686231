/* What a machine's clock and disk are made to do, for every process that has this in LD_PRELOAD.
 *
 * The file that SPARKLOG_CHAOS_SHIM names is mapped by all processes of one "machine"; whoever writes into it
 * (shim.py, which knows the same layout) changes what they live through, while they run. Faults of the disk
 * touch only files on the device named there, and below a folder if one is named; everything else, sockets
 * and log files too, goes through.
 *
 * Calls that change files there are counted by kind. When as many have come as were counted down from, the
 * process ends before the next one, or stands still there for somebody to take the power from its disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { WRITE, CREATE, RENAME, REMOVE, TRUNCATE, MAKE_DIRECTORY, REMOVE_DIRECTORY, SYNC, KINDS };

static volatile struct {
    int64_t wall_offset_ns;
    uint64_t device;
    int32_t write_errno, writes_to_fail;
    int32_t sync_errno, syncs_to_fail;
    int64_t sync_delay_ns;
    int32_t writes_failed, syncs_failed;
    int32_t counts[KINDS];
    uint32_t point_kinds; /* a bit for each kind that is counted down; 0: no crash point */
    int32_t point_left, point_signal, point_tears;
    int32_t reached_pid, reached_kind;
    char reached_path[256];
    char folder[512];
    char failed_path[256]; /* of the write or sync that failed last */
    int64_t room_left;     /* bytes; counts if room_is_limited, and goes below nothing */
    int32_t room_is_limited;
} *control;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("SPARKLOG_CHAOS_SHIM");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) control = page;
}

/* The function that this one hides; looked up once. */
#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* The path of what is open, as the kernel has it; empty if that is not to be had. */
static const char *path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

static int is_on_device(int fd) {
    struct stat found;
    if (!control->device || fstat(fd, &found) != 0 || found.st_dev != control->device) return 0;
    const char *folder = (const char *)control->folder;
    size_t length = strlen(folder);
    if (length == 0) return 1;
    char path[PATH_MAX];
    return strncmp(path_of(fd, path), folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* Tells of a call that fails; then it does. */
static int failure(volatile int32_t *failed, int error, int fd) {
    char path[PATH_MAX], *told = (char *)control->failed_path;
    if (snprintf(told, sizeof control->failed_path, "%s", path_of(fd, path)) < 0) *told = 0;
    __atomic_fetch_add(failed, 1, __ATOMIC_SEQ_CST);
    errno = error;
    return -1;
}

/* Takes one of the failures that are left, if any; many threads may want the last one. */
static int takes(volatile int32_t *left, volatile int32_t *failed, int error, int fd) {
    if (*left <= 0 || !is_on_device(fd) || __atomic_fetch_sub(left, 1, __ATOMIC_SEQ_CST) <= 0) return 0;
    return failure(failed, error, fd) < 0;
}

/* --------------------------------------------------------------------------------------- crash points */

/* The directory that a path is in, open, and the path's last part; what closes it is the caller's affair. */
static int parent_of(int at, const char *path, char *last) {
    char folder[PATH_MAX];
    size_t length = strlen(path);
    if (length >= PATH_MAX) return -1;
    memcpy(folder, path, length + 1);
    while (length > 1 && folder[length - 1] == '/') folder[--length] = 0;
    char *slash = strrchr(folder, '/');
    strcpy(last, slash ? slash + 1 : folder);
    if (slash == folder) slash[1] = 0;
    else if (slash) *slash = 0;
    REAL(int, openat64, int, const char *, int, ...);
    return real(at, slash ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Counts a call that is about to change something; whether the process is to end before it. */
static int is_due(enum kind kind, int fd, const char *last) {
    __atomic_fetch_add(&control->counts[kind], 1, __ATOMIC_SEQ_CST);
    if (!(control->point_kinds >> kind & 1)) return 0;
    if (__atomic_fetch_sub(&control->point_left, 1, __ATOMIC_SEQ_CST) != 1) return 0;
    char path[PATH_MAX];
    path_of(fd, path);
    char *told = (char *)control->reached_path;
    if (snprintf(told, sizeof control->reached_path, "%s%s%s", path, *last ? "/" : "", last) < 0) *told = 0;
    control->reached_kind = kind;
    control->point_kinds = 0;
    __atomic_store_n(&control->reached_pid, getpid(), __ATOMIC_SEQ_CST);
    return 1;
}

/* SIGKILL; or SIGSTOP, and then whoever looks takes the power from the disk while nobody can tell of it. */
static void end_here(void) {
    kill(getpid(), control->point_signal);
    for (;;) pause(); /* other threads may be stopped first: this one's call never begins */
}

static void call_on(enum kind kind, int fd) {
    int error = errno;
    if (control && is_on_device(fd) && is_due(kind, fd, "")) end_here();
    errno = error;
}

/* ``is_there``: whether the call changes something only if that name is there, or only if it is not. */
static void call_at(enum kind kind, int at, const char *path, int is_there) {
    if (!control || !path || !control->device) return;
    int error = errno;
    char last[PATH_MAX];
    struct stat found;
    int parent = parent_of(at, path, last);
    if (parent >= 0) {
        int exists = fstatat(parent, last, &found, AT_SYMLINK_NOFOLLOW) == 0;
        if (is_on_device(parent) && exists == is_there && is_due(kind, parent, last)) end_here();
        close(parent);
    }
    errno = error;
}

/* An open that makes a file, or empties one. */
static void call_open(int at, const char *path, int flags) {
    struct stat found;
    int error = errno;
    if (flags & O_CREAT) call_at(CREATE, at, path, 0);
    int empties = flags & O_TRUNC && control && fstatat(at, path, &found, 0) == 0;
    if (empties && S_ISREG(found.st_mode) && found.st_size > 0) call_at(TRUNCATE, at, path, 1);
    errno = error;
}

#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    REAL(int, open64, const char *, int, ...);
    call_open(AT_FDCWD, path, flags);
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open64(path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE(flags, mode)
    REAL(int, openat64, int, const char *, int, ...);
    call_open(at, path, flags);
    return real(at, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    MODE(flags, mode)
    return openat64(at, path, flags, mode);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    call_at(RENAME, AT_FDCWD, from, 1);
    return real(from, to);
}

int renameat(int at, const char *from, int to_at, const char *to) {
    REAL(int, renameat, int, const char *, int, const char *);
    call_at(RENAME, at, from, 1);
    return real(at, from, to_at, to);
}

int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags) {
    REAL(int, renameat2, int, const char *, int, const char *, unsigned);
    call_at(RENAME, at, from, 1);
    return real(at, from, to_at, to, flags);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    call_at(REMOVE, AT_FDCWD, path, 1);
    return real(path);
}

int unlinkat(int at, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    call_at(flags & AT_REMOVEDIR ? REMOVE_DIRECTORY : REMOVE, at, path, 1);
    return real(at, path, flags);
}

int rmdir(const char *path) {
    REAL(int, rmdir, const char *);
    call_at(REMOVE_DIRECTORY, AT_FDCWD, path, 1);
    return real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    call_at(MAKE_DIRECTORY, AT_FDCWD, path, 0);
    return real(path, mode);
}

int mkdirat(int at, const char *path, mode_t mode) {
    REAL(int, mkdirat, int, const char *, mode_t);
    call_at(MAKE_DIRECTORY, at, path, 0);
    return real(at, path, mode);
}

int ftruncate64(int fd, off64_t size) {
    REAL(int, ftruncate64, int, off64_t);
    call_on(TRUNCATE, fd);
    return real(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int truncate64(const char *path, off64_t size) {
    REAL(int, truncate64, const char *, off64_t);
    call_at(TRUNCATE, AT_FDCWD, path, 1);
    return real(path, size);
}

int truncate(const char *path, off_t size) { return truncate64(path, size); }

/* ------------------------------------------------------------------------------------ writes and syncs */

/* Before a write. If the process ends here and the write is to tear, half of it is done. */
#define CALL_WRITE(fd, half_of_it) \
    if (control && is_on_device(fd) && is_due(WRITE, fd, "")) { \
        if (control->point_tears) (half_of_it); \
        end_here(); \
    }

/* How many of a write's bytes are taken: all of them, or what there is room for; -1 if it fails. */
static ssize_t taken(int fd, size_t size) {
    if (!control) return size;
    if (takes(&control->writes_to_fail, &control->writes_failed, control->write_errno, fd)) return -1;
    if (!control->room_is_limited || size == 0 || !is_on_device(fd)) return size;
    int64_t left = __atomic_fetch_sub(&control->room_left, (int64_t)size, __ATOMIC_SEQ_CST);
    if (left >= (int64_t)size) return size;
    return left > 0 ? left : failure(&control->writes_failed, ENOSPC, fd);
}

/* The same of many parts, which are taken together or not at all. */
static int all_taken(int fd, const struct iovec *parts, int count) {
    size_t size = 0;
    for (int part = 0; part < count; part++) size += parts[part].iov_len;
    ssize_t some = taken(fd, size);
    return some >= 0 && ((size_t)some == size || failure(&control->writes_failed, ENOSPC, fd) == 0);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    ssize_t some = taken(fd, size);
    if (some < 0) return -1;
    CALL_WRITE(fd, real(fd, data, size / 2))
    return real(fd, data, some);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    ssize_t some = taken(fd, size);
    if (some < 0) return -1;
    CALL_WRITE(fd, real(fd, data, size / 2, at))
    return real(fd, data, some, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    if (!all_taken(fd, parts, count)) return -1;
    CALL_WRITE(fd, real(fd, parts, count / 2))
    return real(fd, parts, count);
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags) {
    REAL(ssize_t, pwritev64v2, int, const struct iovec *, int, off64_t, int);
    if (!all_taken(fd, parts, count)) return -1;
    CALL_WRITE(fd, real(fd, parts, count / 2, at, flags))
    return real(fd, parts, count, at, flags);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    return pwritev64v2(fd, parts, count, at, flags);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    return pwritev64v2(fd, parts, count, at, 0);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return pwritev64v2(fd, parts, count, at, 0);
}

/* Whether a sync fails; a slow one is slow first. */
static int sync_fails(int fd) {
    if (!control) return 0;
    int64_t delay = control->sync_delay_ns;
    if (delay > 0 && is_on_device(fd)) {
        struct timespec pause = {delay / 1000000000, delay % 1000000000};
        while (nanosleep(&pause, &pause) != 0 && errno == EINTR) continue;
    }
    return takes(&control->syncs_to_fail, &control->syncs_failed, control->sync_errno, fd);
}

int fsync(int fd) {
    REAL(int, fsync, int);
    if (sync_fails(fd)) return -1;
    call_on(SYNC, fd);
    return real(fd);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    if (sync_fails(fd)) return -1;
    call_on(SYNC, fd);
    return real(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, clock_gettime, clockid_t, struct timespec *);
    int result = real(clock, now);
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (result == 0 && control && is_wall) {
        int64_t moved = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + control->wall_offset_ns;
        now->tv_sec = moved / 1000000000;
        now->tv_nsec = moved % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return (time_t)-1;
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
