/* What a machine's clock and disk are made to do, for every process that has this in LD_PRELOAD.
 *
 * The file that SPARKLOG_CHAOS_SHIM names is mapped by all processes of one "machine"; whoever writes into it
 * (shim.py, which knows the same layout) changes what they live through, while they run. Faults of the disk
 * touch only files on the device named there; everything else, sockets and log files too, goes through.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile struct {
    int64_t wall_offset_ns;
    uint64_t device;
    int32_t write_errno, writes_to_fail;
    int32_t sync_errno, syncs_to_fail;
    int64_t sync_delay_ns;
    int32_t writes_failed, syncs_failed;
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

static int is_on_device(int fd) {
    struct stat found;
    return control->device && fstat(fd, &found) == 0 && found.st_dev == control->device;
}

/* Takes one of the failures that are left, if any; many threads may want the last one. */
static int takes(volatile int32_t *left, volatile int32_t *failed, int error, int fd) {
    if (*left <= 0 || !is_on_device(fd) || __atomic_fetch_sub(left, 1, __ATOMIC_SEQ_CST) <= 0) return 0;
    __atomic_fetch_add(failed, 1, __ATOMIC_SEQ_CST);
    errno = error;
    return 1;
}

static int write_fails(int fd) {
    return control && takes(&control->writes_to_fail, &control->writes_failed, control->write_errno, fd);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return write_fails(fd) ? -1 : real(fd, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return write_fails(fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    return write_fails(fd) ? -1 : real(fd, parts, count);
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
    return sync_fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    return sync_fails(fd) ? -1 : real(fd);
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
