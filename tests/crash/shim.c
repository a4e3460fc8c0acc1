/* Lets a real process's writes and fsyncs fail: preloaded before the C library by tests/crash/shim.py.

   While the file named by PAYONCE_SHIM exists, its one line says what fails: CALL ERRNO PART FIRST COUNT, where CALL is
   "write" or "sync", PART is a piece of the path of the files concerned, FIRST the number of the first such call of a process
   that fails and COUNT how many do (0: all from then on). A write that fails has written nothing; an fsync that fails may or
   may not have synced, and it is not called at all here, so the bytes are in memory alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd, const char *call)
{
    const char *control = getenv("PAYONCE_SHIM");
    char line[512], wanted[16], part[256], link[64], path[1024];
    static long seen;
    long first, count, now;
    int code, from;
    ssize_t length;
    int kept = errno;

    if (control == NULL)
        return 0;
    from = syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        errno = kept;
        return 0;
    }
    length = syscall(SYS_read, from, line, sizeof line - 1);
    syscall(SYS_close, from);
    errno = kept;
    if (length <= 0)
        return 0;
    line[length] = 0;
    if (sscanf(line, "%15s %d %255s %ld %ld", wanted, &code, part, &first, &count) != 5 || strcmp(wanted, call) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    errno = kept;
    if (length <= 0)
        return 0;
    path[length] = 0;
    if (strstr(path, part) == NULL)
        return 0;
    now = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (now < first || (count > 0 && now >= first + count))
        return 0;
    errno = code;
    return 1;
}

#define PASS(type, name, call, parameters, arguments)                  \
    type name parameters                                               \
    {                                                                  \
        static type(*real) parameters;                                 \
        if (fails(fd, call))                                           \
            return -1;                                                 \
        if (real == NULL)                                              \
            real = (type(*) parameters) dlsym(RTLD_NEXT, #name);       \
        return real arguments;                                         \
    }

PASS(ssize_t, write, "write", (int fd, const void *data, size_t count), (fd, data, count))
PASS(ssize_t, pwrite, "write", (int fd, const void *data, size_t count, off_t at), (fd, data, count, at))
PASS(ssize_t, pwrite64, "write", (int fd, const void *data, size_t count, off_t at), (fd, data, count, at))
PASS(int, fsync, "sync", (int fd), (fd))
PASS(int, fdatasync, "sync", (int fd), (fd))
